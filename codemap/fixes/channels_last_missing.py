"""Convolutions on NCHW tensors: the model and its input in `channels_last`."""

from __future__ import annotations

import re

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Cure, Fixer
from .conv_norm import holds_layers
from .layout_conversion import unconverted_model
from .memory_format import IMAGES, has_views, is_handed_out
from .models import CALL_WORDS
from .resolve import Value
from .scene import Scene, searcher

_SLUG = "channels-last-missing"
_KNOWN = ("torch.nn.", "torchvision.models.", "timm.")
"""Libraries whose models take the layout."""
_DEEP = ("Conv3d", "ConvTranspose3d")


def _confirm(case: Case) -> Confirmation | None:
    found = unconverted_model(case)
    if found is None:
        return None
    if holds_layers(found.view.resolver, found.construction, _DEEP):
        reason = "it has 3-D layers too, whose weights cannot take channels_last"
        return Confirmation(found.place, (), found.related, reason)
    safety = Safety.SAFE if _keeps_working(found.view, found.construction) else Safety.UNSAFE
    fix = Fix(_SLUG, "Run the model in channels_last", safety, found.edits(IMAGES))
    return Confirmation(found.place, (fix,), found.related)


def _keeps_working(view: Scene, construction: Value) -> bool:
    """Whether no module in sight calls `.view(...)`, which raises on some channels_last tensors."""
    if is_handed_out(construction):
        return False
    made = view.resolver.instance_class(construction)
    if made is None:
        return construction.outline.dotted(getattr(construction.node, "func", construction.node)).startswith(_KNOWN)
    return not any(has_views(file) for file in {made.outline, *(frame.outline for frame in view.frames)})


_CURE = Cure(re.compile(r"\bchannels_last\b"), is_elsewhere=True)
FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, CALL_WORDS), cure=_CURE)
