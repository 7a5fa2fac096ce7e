"""3-D convolutions on NCDHW tensors: the model and its input in `channels_last_3d`."""

from __future__ import annotations

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Fixer
from .conv_norm import holds_layers
from .edits import Patch
from .layers import has_layers
from .memory_format import VOLUMES, convert_input, convert_model, has_views, is_converted, is_handed_out
from .models import CALL_WORDS, ModelCall, assigned_target, chain_end, model_call
from .resolve import Value
from .scene import Scene, scene, searcher
from .versions import is_older

_SLUG = "volumetric-layout"
_VOLUMETRIC = ("Conv3d", "ConvTranspose3d", "MaxPool3d", "BatchNorm3d")
_FLAT = ("Conv2d", "ConvTranspose2d")


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
    if not case.device.is_cpu and is_older(case.device.torch_version, (1, 9)):
        return Confirmation(place, (), related, "3-D convolutions take the layout from PyTorch 1.9 on")
    if holds_layers(view.resolver, construction, _FLAT):
        return Confirmation(place, (), related, "it has 2-D layers too, whose weights cannot take channels_last_3d")
    return Confirmation(place, (_fix(view, model, construction),), related)


def _fix(view: Scene, model: ModelCall, construction: Value) -> Fix:
    patch = Patch(construction.outline)
    convert_model(patch, construction.node, VOLUMES)
    edits = ()
    if model.outline is construction.outline:
        convert_input(patch, model, view.resolver, VOLUMES)
    else:
        other = Patch(model.outline)
        convert_input(other, model, view.resolver, VOLUMES)
        edits = other.edits()
    made = view.resolver.instance_class(construction)
    is_bare = made is None and construction.outline.dotted(
        getattr(construction.node, "func", construction.node)
    ).startswith("torch.nn.")
    files = {frame.outline for frame in view.frames} | ({made.outline} if made is not None else set())
    is_volumetric = bool(has_layers(view.resolver, construction, _VOLUMETRIC)) and not is_handed_out(construction)
    keeps = is_volumetric and (made is not None or is_bare) and not any(has_views(file) for file in files)
    title = "Run the model and its input in channels_last_3d"
    return Fix(_SLUG, title, Safety.SAFE if keeps else Safety.UNSAFE, (*patch.edits(), *edits))


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, CALL_WORDS))
