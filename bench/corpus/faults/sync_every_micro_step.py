"""sync-every-micro-step: gradients are accumulated over micro-batches, and exchanged after each."""

from __future__ import annotations

import random

from ..fault import Control, Fault
from ..job import Job
from .shared.device import usual_ranks

SLUG = "sync-every-micro-step"


def apply(job: Job, rng: random.Random) -> bool:
    """Two or three micro-batches without `no_sync`."""
    if not _accumulate(job, rng):
        return False
    job.settings[SLUG] = "no no_sync"
    return True


def apply_control(job: Job, rng: random.Random) -> bool:
    """The same, exchanged after the last micro-batch only."""
    return _accumulate(job, rng)


def _accumulate(job: Job, rng: random.Random) -> bool:
    if not job.is_training:
        return False
    if job.ranks == 1:
        job.ranks = usual_ranks(rng)
    if job.accumulate == 1:
        job.accumulate = rng.choice((2, 2, 3))
    return True


FAULT = Fault(SLUG, apply, on=frozenset({"device"}), excludes=frozenset({"exposed-allreduce"}))
CONTROL = Control("accumulation with no_sync", apply_control)
