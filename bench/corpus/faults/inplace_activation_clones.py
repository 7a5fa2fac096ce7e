"""inplace-activation-clones: an in-place activation whose backward needs its input, so autograd copies it first."""

from __future__ import annotations

import random

from torch import nn

from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.model import BoolArray

from ..fault import Control, Fault
from ..job import Job
from ..surgery import Place, find
from .shared.operators import parents_named
from .shared.parts import CONVOLUTIONS, LAYERS, find_any

SLUG = "inplace-activation-clones"
_NEED_THEIR_INPUT = (nn.SiLU, nn.Hardswish, nn.ReLU6, nn.Mish)
_OPERATORS = tuple(f"aten::{name}_" for name in ("silu", "hardswish", "hardtanh", "relu6", "mish", "hardsigmoid"))


def apply(job: Job, rng: random.Random) -> bool:
    """All activations in training of a kind that needs its input; else all others are exchanged for such a kind."""
    if not job.is_training:
        return False
    own = [place for place in find_any(job.model, _NEED_THEIR_INPUT) if _is_alone(place)]
    for place in own:
        setattr(place.part, "inplace", True)  # noqa: B010
    # In place already: nobody reads what such an activation overwrites.
    others = find(job.model, nn.ReLU, lambda part: part.inplace)
    if not own:
        kind = rng.choice([nn.ReLU6, nn.Hardswish, nn.SiLU])
        for place in others:
            place.replace(kind(inplace=True))
    return bool(own or others)


def spoils(timeline: Timeline) -> BoolArray:
    """The clones inside of in-place activations."""
    return parents_named(timeline, "aten::clone", _OPERATORS)


def apply_control(job: Job, rng: random.Random) -> bool:
    """ReLUs in place after norms, which need no input for their backward and clone nothing."""
    places = [place for place in find_any(job.model, (nn.ReLU,)) if _is_alone(place)]
    for place in places:
        setattr(place.part, "inplace", True)  # noqa: B010
    return bool(places)


def _is_alone(place: Place[nn.Module]) -> bool:
    """Whether nobody else reads what goes in: it stands right behind a layer that made it."""
    children = list(place.parent.children())
    at = children.index(place.part)
    return at > 0 and isinstance(children[at - 1], (*LAYERS, *CONVOLUTIONS))


FAULT = Fault(SLUG, apply, spoils=spoils)
CONTROL = Control("ReLUs in place", apply_control)
