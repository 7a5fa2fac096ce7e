"""Convolutions on NCHW tensors: the model and its input in `channels_last`."""

from __future__ import annotations

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Fixer
from .conv_norm import holds_layers
from .edits import Patch
from .memory_format import convert_input, convert_model, has_views, is_converted, is_handed_out
from .models import CALL_WORDS, ModelCall, assigned_target, chain_end, model_call
from .resolve import Value
from .scene import Scene, scene, searcher

_SLUG = "channels-last-missing"
_KNOWN = ("torch.nn.", "torchvision.models.", "timm.")
"""Libraries whose models take the layout."""
_DEEP = ("Conv3d", "ConvTranspose3d")


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
    related = (Related("the model's input", called),)
    if holds_layers(view.resolver, construction, _DEEP):
        return Confirmation(place, (), related, "it has 3-D layers too, whose weights cannot take channels_last")
    return Confirmation(place, (_fix(view, model, construction),), related)


def _fix(view: Scene, model: ModelCall, construction: Value) -> Fix:
    patch = Patch(construction.outline)
    convert_model(patch, construction.node)
    edits = ()
    if model.outline is construction.outline:
        convert_input(patch, model, view.resolver)
    else:
        other = Patch(model.outline)
        convert_input(other, model, view.resolver)
        edits = other.edits()
    safety = Safety.SAFE if _keeps_working(view, construction) else Safety.UNSAFE
    return Fix(_SLUG, "Run the model and its input in channels_last", safety, (*patch.edits(), *edits))


def _keeps_working(view: Scene, construction: Value) -> bool:
    """Whether no module in sight calls `.view(...)`, which raises on some channels_last tensors."""
    if is_handed_out(construction):
        return False
    made = view.resolver.instance_class(construction)
    if made is None:
        return construction.outline.dotted(getattr(construction.node, "func", construction.node)).startswith(_KNOWN)
    return not any(has_views(file) for file in {made.outline, *(frame.outline for frame in view.frames)})


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, CALL_WORDS))
