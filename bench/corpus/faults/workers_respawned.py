"""workers-respawned: a loader's workers are started again and again, by `next(iter(loader))` or short epochs."""

from __future__ import annotations

import random
from collections.abc import Callable

from torch.utils.data import DataLoader, Dataset

from ..fault import Fault
from ..job import Job, Moment, Step, Tensors
from ..marks import on_host
from .shared.places import at

SLUG = "workers-respawned"


class Samples(Dataset[Tensors]):
    """A few samples of the job's own."""

    def __init__(self, make_sample: Callable[[int], Tensors], length: int) -> None:
        self.make_sample, self.length = make_sample, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Tensors:
        return self.make_sample(index)


def apply(job: Job, rng: random.Random) -> bool:
    """A second loader (references, unlabelled images, a validation batch) whose epochs are one or two batches."""
    samples = Samples(job.make_sample, length=2 * job.batch_size)
    workers, epoch = rng.choice((1, 2, 2, 4)), rng.choice((1, 1, 2))
    loader = DataLoader(samples, batch_size=rng.choice((1, job.batch_size)), num_workers=workers, shuffle=True)
    moment = rng.choice((Moment.BEFORE_FORWARD, Moment.AFTER_FORWARD, Moment.END))

    def take(step: Step) -> None:
        if step.number % epoch == 0:
            with on_host():
                next(iter(loader))

    at(job, moment, SLUG, take)
    return True


FAULT = Fault(SLUG, apply)
