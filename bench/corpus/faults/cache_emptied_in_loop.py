"""cache-emptied-in-loop: each step gives the allocator's memory back, or runs the garbage collector."""

from __future__ import annotations

import gc
import random

import torch

from ..fault import Fault
from ..job import Job, Moment, Step
from ..marks import act
from .shared.chance import count
from .shared.places import at

SLUG = "cache-emptied-in-loop"
_MOMENTS = (Moment.BEFORE_FORWARD, Moment.AFTER_FORWARD, Moment.AFTER_BACKWARD, Moment.END, Moment.END)


def apply(job: Job, rng: random.Random) -> bool:
    """`gc.collect()`, `empty_cache()` or both, at one to three moments of the step."""
    collects, empties = rng.choice(((True, True), (True, False), (False, True)))
    generation = rng.choice((0, 1, 2, 2))
    gc.freeze()  # what whoever makes the corpus holds is no part of the job, and not to be looked through
    moments = _MOMENTS if job.is_training else (Moment.BEFORE_FORWARD, Moment.AFTER_FORWARD, Moment.END)

    def run(step: Step) -> None:
        if collects:
            gc.collect(generation)
        if empties:
            empty_cache(step.device)

    for moment in rng.sample(moments, count(rng, 1, 3)):
        at(job, moment, SLUG, run)
    return True


def empty_cache(device: torch.device) -> None:
    """Give back what the allocator holds."""
    with act("empty_cache"):
        if device.type == "cuda":
            torch.cuda.empty_cache()


FAULT = Fault(SLUG, apply)
