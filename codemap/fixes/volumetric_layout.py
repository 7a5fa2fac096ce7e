"""3-D convolutions on NCDHW tensors: the model and its input in `channels_last_3d`."""

from __future__ import annotations

import re

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Cure, Fixer
from .conv_norm import holds_layers
from .layers import has_layers
from .layout_conversion import unconverted_model
from .memory_format import VOLUMES, has_views, is_handed_out
from .models import CALL_WORDS
from .resolve import Value
from .scene import Scene, searcher
from .versions import is_older

_SLUG = "volumetric-layout"
_VOLUMETRIC = ("Conv3d", "ConvTranspose3d", "MaxPool3d", "BatchNorm3d")
_FLAT = ("Conv2d", "ConvTranspose2d")


def _confirm(case: Case) -> Confirmation | None:
    found = unconverted_model(case)
    if found is None:
        return None
    reason = ""
    if not case.device.is_cpu and is_older(case.device.torch_version, (1, 9)):
        reason = "3-D convolutions take the layout from PyTorch 1.9 on"
    elif holds_layers(found.view.resolver, found.construction, _FLAT):
        reason = "it has 2-D layers too, whose weights cannot take channels_last_3d"
    if reason:
        return Confirmation(found.place, (), found.related, reason)
    safety = Safety.SAFE if _keeps_working(found.view, found.construction) else Safety.UNSAFE
    fix = Fix(_SLUG, "Run the model in channels_last_3d", safety, found.edits(VOLUMES))
    return Confirmation(found.place, (fix,), found.related)


def _keeps_working(view: Scene, construction: Value) -> bool:
    """Whether 3-D layers are seen, and no module in sight calls `.view(...)`, which raises on some such tensors."""
    made = view.resolver.instance_class(construction)
    is_bare = made is None and construction.outline.dotted(
        getattr(construction.node, "func", construction.node)
    ).startswith("torch.nn.")
    files = {frame.outline for frame in view.frames} | ({made.outline} if made is not None else set())
    is_volumetric = bool(has_layers(view.resolver, construction, _VOLUMETRIC)) and not is_handed_out(construction)
    return is_volumetric and (made is not None or is_bare) and not any(has_views(file) for file in files)


_CURE = Cure(re.compile(r"\bchannels_last_3d\b"), is_elsewhere=True)
FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, CALL_WORDS), cure=_CURE)
