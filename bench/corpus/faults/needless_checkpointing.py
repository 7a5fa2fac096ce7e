"""needless-checkpointing: blocks are computed again in the backward pass, to save memory that nobody lacks."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.utils.checkpoint import checkpoint

from .. import surgery
from ..fault import Fault
from ..job import Job
from .shared.places import layers, marked

SLUG = "needless-checkpointing"


def apply(job: Job, rng: random.Random) -> bool:
    """`checkpoint` round some of the model's blocks, or most."""
    chosen = surgery.choose(layers(job), rng, least=0.3) if job.is_training else []
    reentrant = rng.random() < 0.3

    def twice(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if not all(isinstance(arg, Tensor) for arg in args):
            return original(*args, **kwargs)  # a list may grow until the second run
        runs: list[None] = []

        def run(*args: Any) -> Any:
            runs.append(None)
            with marked(SLUG if len(runs) > 1 else ""):
                return original(*args, **kwargs)

        needs_gradients = any(arg.requires_grad for arg in args)
        return checkpoint(run, *args, use_reentrant=reentrant and needs_gradients)

    for place in chosen:
        surgery.wrap_forward(place.part, twice)
    return bool(chosen)


FAULT = Fault(SLUG, apply)
