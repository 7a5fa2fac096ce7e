"""permute-contiguous-churn: tensors are permuted and copied to another layout, and a moment later back again."""

from __future__ import annotations

import random
from collections.abc import Callable

from torch import Tensor, nn

from ..fault import Control, Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import choose, find, wrap_forward
from .shared.parts import ACTIVATIONS, BLOCKS, find_any, first_inputs

SLUG = "permute-contiguous-churn"


def _there(x: Tensor) -> Tensor:
    """The channels of an image or of tokens from one end to the other, written anew."""
    return x.permute(0, *range(2, x.dim()), 1).contiguous()


def _back(x: Tensor) -> Tensor:
    return x.permute(0, x.dim() - 1, *range(1, x.dim() - 1)).contiguous()


def apply(job: Job, rng: random.Random) -> bool:
    """Round some activations, or on the way into some blocks, for tokens or images."""
    inside = rng.random() < 0.5
    candidates = find_any(job.model, ACTIVATIONS if inside else BLOCKS)
    seen = first_inputs(job, [place.part for place in candidates])
    places = [place for place in candidates if place.part in seen and seen[place.part].dim() in (3, 4, 5)]
    places = [place for place in places if not getattr(place.part, "inplace", False)]

    def round_operator(original: Callable, x: Tensor) -> Tensor:
        with spoiled(SLUG):
            moved = _there(x)
        result = original(moved)
        with spoiled(SLUG):
            return _back(result)

    def before_block(original: Callable, x: Tensor, *others: Tensor | None) -> Tensor:
        with spoiled(SLUG):
            x = _back(_there(x))
        return original(x, *others)

    for place in choose(places, rng, least=0.3):
        wrap_forward(place.part, round_operator if inside else before_block)
    return bool(places)


def apply_control(job: Job, rng: random.Random) -> bool:
    """One image to tokens and back, each needed once: a norm over channels between convolutions."""
    places = find(job.model, nn.Conv2d, lambda conv: conv.out_channels > 1)
    if places:
        chosen = rng.choice(places).part
        _norm_over_channels(chosen)
    return bool(places)


def _norm_over_channels(conv: nn.Conv2d) -> None:
    norm = nn.LayerNorm(conv.out_channels)
    conv.channel_norm = norm

    def forward(original: Callable, x: Tensor) -> Tensor:
        tokens = original(x).permute(0, 2, 3, 1)
        return norm(tokens).permute(0, 3, 1, 2)

    wrap_forward(conv, forward)


FAULT = Fault(SLUG, apply, excludes=frozenset(("channels-last-missing",)))
CONTROL = Control("one norm over channels", apply_control)
