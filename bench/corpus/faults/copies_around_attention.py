"""copies-around-attention: queries, keys and values made dense before a fused call that takes them as they lie."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..blocks import AttentionCore
from ..fault import Control, Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import choose, find, wrap_method

SLUG = "copies-around-attention"


def apply(job: Job, rng: random.Random) -> bool:
    """In some of the attentions: before the call, or before and after it."""
    copied = rng.choice([Tensor.contiguous, Tensor.clone])
    after = rng.random() < 0.4
    places = choose(find(job.model, AttentionCore), rng, least=0.5)

    def core(original: Callable, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        with spoiled(SLUG):
            q, k, v = copied(q), copied(k), copied(v)
        attended = original(q, k, v, bias)
        if not after:
            return attended
        with spoiled(SLUG):
            return attended.transpose(1, 2).clone().transpose(1, 2)

    for place in places:
        wrap_method(place.part, "core", core)
    return bool(places)


def apply_control(job: Job, rng: random.Random) -> bool:
    """Keys scaled by a learned temperature of each head, which writes them anew, as it must."""
    places = choose(find(job.model, AttentionCore), rng)
    for place in places:
        _scale_keys(place.part)
    return bool(places)


def _scale_keys(attention: AttentionCore) -> None:
    temperature = nn.Parameter(torch.ones(attention.heads, 1, 1))
    attention.temperature = temperature

    def core(original: Callable, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        return original(q, (k * temperature).to(k.dtype), v, bias)

    wrap_method(attention, "core", core)


FAULT = Fault(
    SLUG,
    apply,
    excludes=frozenset(
        ("sdpa-math-fallback", "unfused-attention", "attention-weights-unused", "masked-window-as-full")
    ),
)
CONTROL = Control("keys scaled before attention", apply_control)
