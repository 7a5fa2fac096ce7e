"""qkv-recomputed: one projection run again for the keys and the values."""

from __future__ import annotations

import random
from collections.abc import Callable

from torch import Tensor

from ..blocks import Attention
from ..fault import Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import choose, find, wrap_method

SLUG = "qkv-recomputed"


def apply(job: Job, rng: random.Random) -> bool:
    """In some of the self-attentions: once more for keys and values together, or for each of them."""
    again = rng.choice([1, 2])
    places = choose(find(job.model, Attention, lambda part: hasattr(part, "qkv")), rng)

    def project(original: Callable, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, _, _ = original(x)
        with spoiled(SLUG):
            _, k, v = original(x)
            if again == 2:
                _, _, v = original(x)
        return q, k, v

    for place in places:
        wrap_method(place.part, "project", project)
    return bool(places)


FAULT = Fault(SLUG, apply, excludes=frozenset(("split-qkv",)))
