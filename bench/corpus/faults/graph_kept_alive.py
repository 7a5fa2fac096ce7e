"""graph-kept-alive: a step's graph outlives its backward pass, and mostly is run through again."""

from __future__ import annotations

import random

import torch
from torch import Tensor

from ..fault import Control, Fault
from ..job import Job, Moment, Step
from .shared.places import at

SLUG = "graph-kept-alive"


def apply(job: Job, rng: random.Random) -> bool:
    """`backward(retain_graph=True)` once or twice before the loss's own, or a list of losses with their graphs."""
    if not job.is_training:
        return False
    kept: list[Tensor] = []
    passes = rng.choice((0, 1, 1, 2))

    def keep(step: Step) -> None:
        assert step.loss is not None
        for _ in range(passes):
            (0.1 * step.loss).backward(retain_graph=True)
        kept.append(step.loss * 1.0)
        torch.stack(kept).mean()

    at(job, Moment.AFTER_FORWARD, SLUG, keep)
    return True


def apply_control(job: Job, rng: random.Random) -> bool:
    """A list of losses without their graphs."""
    if not job.is_training:
        return False
    losses: list[Tensor] = []

    def keep(step: Step) -> None:
        assert step.loss is not None
        losses.append(step.loss.detach())

    job.hook(Moment.AFTER_FORWARD, keep)
    return True


FAULT = Fault(SLUG, apply)
CONTROL = Control("losses kept without their graphs", apply_control)
