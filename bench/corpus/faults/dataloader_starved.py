"""dataloader-starved: too few workers for what the samples cost, so that the step waits for them."""

from __future__ import annotations

import random
import time
from functools import partial

from torch import Tensor

from ..fault import Control, Fault
from ..job import Job, Loading
from .shared.chance import count, spread
from .shared.host_work import TRANSFORMS, compose, dear_samples

SLUG = "dataloader-starved"


def apply(job: Job, rng: random.Random) -> bool:
    """One worker, seldom two, whose samples cost 25 to 120 transforms each, or come from slow storage."""
    if job.loading.slug:
        return False
    if rng.random() < 0.5:
        transform = compose(rng, TRANSFORMS, rounds=count(rng, 25, 120))
    else:
        transform = partial(_read, seconds=spread(rng, 0.006, 0.06))
    samples = dear_samples(job.loading.make_sample or job.make_sample, transform)
    job.loading = Loading(from_memory=False, workers=rng.choice((1, 1, 2)), make_sample=samples, slug=SLUG)
    return True


def _read(image: Tensor, seconds: float) -> Tensor:
    time.sleep(seconds)
    return image


def apply_control(job: Job, rng: random.Random) -> bool:
    """A worker that is always ahead."""
    if job.loading.slug or not job.loading.from_memory:
        return False
    job.loading = Loading(from_memory=False, workers=rng.choice((1, 2)), make_sample=job.make_sample)
    return True


FAULT = Fault(SLUG, apply, excludes=frozenset({"dataloader-in-main-process"}))
CONTROL = Control("workers that are ahead", apply_control)
