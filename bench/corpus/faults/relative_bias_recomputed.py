"""relative-bias-recomputed: inference gathers the relative position bias from its table in every forward pass."""

from __future__ import annotations

import random
from collections.abc import Callable

from torch import Tensor

from ..blocks import Attention
from ..fault import Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import choose, find, wrap_method

SLUG = "relative-bias-recomputed"


def _by_flat_index(attention: Attention) -> Tensor:
    """As Swin's own code does."""
    assert attention.table is not None
    tokens = attention.positions.shape[0]
    bias = attention.table[attention.positions.view(-1)].view(tokens, tokens, -1)
    return bias.permute(2, 0, 1).contiguous().unsqueeze(0)


def _scaled_sigmoid(attention: Attention) -> Tensor:
    """As version 2 bounds it; by so wide a margin that small biases stay what they are."""
    bias = _by_flat_index(attention)
    return 64 * (bias / 16).sigmoid() - 32


def apply(job: Job, rng: random.Random) -> bool:
    """In some of the attentions with a table; only at inference, as training needs it anew in each step."""
    gather = rng.choice([_by_flat_index, _by_flat_index, _scaled_sigmoid])
    if job.is_training:
        return False
    places = choose(find(job.model, Attention, lambda part: part.table is not None), rng)
    for place in places:
        _gather_always(place.part, gather)
    return bool(places)


def _gather_always(attention: Attention, gather: Callable[[Attention], Tensor]) -> None:
    def relative_bias(original: Callable) -> Tensor:
        with spoiled(SLUG):
            return gather(attention)

    wrap_method(attention, "relative_bias", relative_bias)


FAULT = Fault(SLUG, apply)
