"""many-small-transfers: many small tensors are copied one by one between host and device."""

from __future__ import annotations

import random

import torch
from torch import Tensor

from ..fault import Control, Fault
from ..job import Job, Moment, Step
from ..marks import on_host, to_device, to_host
from .shared.chance import count
from .shared.places import after_model, at, by_sample

SLUG = "many-small-transfers"
_MOST_ELEMENTS = 512


def apply(job: Job, rng: random.Random) -> bool:
    """Results taken to the host sample by sample, or annotations sent one by one."""
    if rng.random() < 0.5:
        _take(job, each=count(rng, 1, 6))
    else:
        _send(job, each=count(rng, 1, 8), pinned=rng.random() < 0.5)
    return True


def _take(job: Job, each: int) -> None:
    def run(outputs: object) -> None:
        samples = _parts(outputs, job.batch_size)
        for sample in samples:
            for part in sample.tensor_split(each):
                to_host(part)

    after_model(job, SLUG, run)


def _parts(outputs: object, samples: int) -> list[Tensor]:
    found = list(by_sample(outputs, samples).detach()[:, :_MOST_ELEMENTS])
    return found if len(found) > 1 else list(found[0].tensor_split(samples))


def _send(job: Job, each: int, pinned: bool) -> None:
    def run(step: Step) -> None:
        for number in range(job.batch_size * each):
            with on_host():
                made = torch.full((4, 1 + number % 7), float(number))
            to_device(made, step.device, pinned=pinned, blocking=not pinned)

    at(job, Moment.BEFORE_FORWARD, SLUG, run)


def apply_control(job: Job, rng: random.Random) -> bool:
    """All annotations packed into one tensor, sent once, and parted on the device."""
    each = count(rng, 1, 8)

    def run(step: Step) -> None:
        with on_host():
            packed = torch.zeros(job.batch_size, each, 4)
        to_device(packed, step.device).unbind(0)

    job.hook(Moment.BEFORE_FORWARD, run)
    return True


FAULT = Fault(SLUG, apply, on=frozenset({"device"}))
CONTROL = Control("annotations sent in one piece", apply_control)
