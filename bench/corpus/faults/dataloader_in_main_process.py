"""dataloader-in-main-process: the step waits while the training process itself makes the samples."""

from __future__ import annotations

import random

from ..fault import Control, Fault
from ..job import Job, Loading, Tensors
from .shared.chance import count
from .shared.host_work import TRANSFORMS, compose, dear_samples, flip

SLUG = "dataloader-in-main-process"


def apply(job: Job, rng: random.Random) -> bool:
    """A loader without workers, whose samples cost one to twelve transforms each."""
    if job.loading.slug:
        return False
    transform = compose(rng, TRANSFORMS, rounds=count(rng, 1, 12))
    samples = dear_samples(job.loading.make_sample or job.make_sample, transform)
    job.loading = Loading(from_memory=False, workers=0, make_sample=samples, slug=SLUG)
    return True


def apply_control(job: Job, rng: random.Random) -> bool:
    """The same loader over a set of small samples in memory, mirrored at most."""
    if job.loading.slug or not job.loading.from_memory:
        return False
    kept = [job.make_sample(number) for number in range(2 * job.batch_size)]

    def from_list(number: int) -> Tensors:
        return kept[number % len(kept)]

    samples = dear_samples(from_list, flip) if rng.random() < 0.3 else from_list
    job.loading = Loading(from_memory=False, workers=0, make_sample=samples)
    return True


FAULT = Fault(SLUG, apply, excludes=frozenset({"dataloader-starved"}))
CONTROL = Control("cheap samples loaded in the main process", apply_control)
