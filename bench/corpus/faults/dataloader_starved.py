"""dataloader-starved: too few workers for what the samples cost, so that the step waits for them."""

from __future__ import annotations

import random

from ..fault import Control, Fault
from ..job import Job, Loading
from .shared.chance import count
from .shared.host_work import TRANSFORMS, compose, dear_samples

SLUG = "dataloader-starved"


def apply(job: Job, rng: random.Random) -> bool:
    """One worker, seldom two, whose samples cost 12 to 100 transforms each."""
    if job.loading.slug:
        return False
    transform = compose(rng, TRANSFORMS, rounds=count(rng, 12, 100))
    samples = dear_samples(job.loading.make_sample or job.make_sample, transform)
    job.loading = Loading(from_memory=False, workers=rng.choice((1, 1, 2)), make_sample=samples, slug=SLUG)
    return True


def apply_control(job: Job, rng: random.Random) -> bool:
    """A worker that is always ahead."""
    if job.loading.slug or not job.loading.from_memory:
        return False
    job.loading = Loading(from_memory=False, workers=rng.choice((1, 2)), make_sample=job.make_sample)
    return True


FAULT = Fault(SLUG, apply, excludes=frozenset({"dataloader-in-main-process"}))
CONTROL = Control("workers that are ahead", apply_control)
