"""allocator-retry: memory is so full that the allocator frees and asks the device again in the middle of the work."""

from __future__ import annotations

import random

from torch import Tensor

from ..fault import Fault
from ..job import Job
from ..marks import act, spoiled
from .shared.places import after_layers

SLUG = "allocator-retry"


def apply(job: Job, rng: random.Random) -> bool:
    """Retries in some layers, forward, and in half of the jobs backward as well."""
    backward = rng.random() < 0.5

    def retry(output: Tensor) -> Tensor:
        _allocate(output)
        if backward and output.requires_grad:
            output.register_hook(_retry_again)
        return output

    return after_layers(job, rng, SLUG, retry, least=0.05)


def _allocate(like: Tensor) -> None:
    with act("empty_cache"):
        like.new_empty(like.shape)


def _retry_again(gradient: Tensor) -> None:
    with spoiled(SLUG):
        _allocate(gradient)


FAULT = Fault(SLUG, apply, on=frozenset({"device"}))
