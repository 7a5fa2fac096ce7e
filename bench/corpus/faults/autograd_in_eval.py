"""autograd-in-eval: a forward pass without a backward pass records one all the same."""

from __future__ import annotations

import copy
import random
from contextlib import nullcontext

import torch

from torchtraceap.analyzer.timeline.model import Phase, Timeline
from torchtraceap.analyzer.trace.model import BoolArray

from ..fault import Control, Fault
from ..job import Job, Moment, Step
from .shared.places import marked
from .shared.rows import no_rows

SLUG = "autograd-in-eval"


def apply(job: Job, rng: random.Random) -> bool:
    """Inference without `no_grad`; in training a teacher's pass."""
    if job.is_training:
        _add_teacher(job, SLUG)
        return True
    if not job.no_grad:
        return False
    job.no_grad = False
    return True


def _add_teacher(job: Job, slug: str) -> None:
    teacher = copy.deepcopy(job.model)

    def predict(step: Step) -> None:
        teacher.to(step.device)
        precision = torch.autocast(step.device.type, job.autocast) if job.autocast else nullcontext()
        with marked(slug), precision, nullcontext() if slug else torch.no_grad():
            teacher(*step.inputs)

    job.hook(Moment.BEFORE_FORWARD, predict)


def spoils(timeline: Timeline) -> BoolArray:
    """The forward pass, where there is no backward pass."""
    if (timeline.phase == Phase.BACKWARD).any():
        return no_rows(timeline)
    return timeline.phase == Phase.FORWARD


def apply_control(job: Job, rng: random.Random) -> bool:
    """A teacher's pass under `no_grad`."""
    if not job.is_training:
        return False
    _add_teacher(job, "")
    return True


FAULT = Fault(SLUG, apply, spoils)
CONTROL = Control("a teacher's pass without gradients", apply_control)
