"""Convolutions on NCHW tensors: the model and its input in `channels_last`."""

from __future__ import annotations

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Fixer
from .edits import Patch
from .memory_format import convert_input, convert_model, has_views, is_converted
from .models import ModelCall, assigned_target, chain_end, model_call
from .resolve import Resolver, Value
from .scene import scene, searcher

_SLUG = "channels-last-missing"


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    model = model_call(view) if view is not None else None
    if view is None or model is None:
        return None
    construction = model.constructions[0]
    file = construction.outline
    chain = chain_end(file, construction.node)
    if is_converted(file, assigned_target(file, chain), chain):
        return None
    place = file.location(file.statement(construction.node), case.location)
    called = model.outline.location(model.outline.statement(model.call), case.location)
    return Confirmation(place, (_fix(view.resolver, model, construction),), (Related("the model's input", called),))


def _fix(resolver: Resolver, model: ModelCall, construction: Value) -> Fix:
    patch = Patch(construction.outline)
    convert_model(patch, construction.node)
    edits = ()
    if model.outline is construction.outline:
        convert_input(patch, model)
    else:
        other = Patch(model.outline)
        convert_input(other, model)
        edits = other.edits()
    made = resolver.instance_class(construction)
    # A `.view` of a channels_last tensor raises where `.reshape` would copy.
    safety = Safety.UNSAFE if made is not None and has_views(Value(made.outline, construction.node)) else Safety.SAFE
    return Fix(_SLUG, "Run the model and its input in channels_last", safety, (*patch.edits(), *edits))


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, ("model(", "net(", "backbone(", "encoder(", "network(")))
