"""exposed-allreduce: gradients are exchanged when there is nothing left to hide the exchange behind."""

from __future__ import annotations

import random

import torch

from torchtraceap.analyzer.timeline.model import KernelClass, Timeline
from torchtraceap.analyzer.trace.model import BoolArray

from ..fault import Control, Fault
from ..job import Hook, Job, Moment, Step
from .shared.device import all_reduce, usual_ranks
from .shared.places import at, trainable
from .shared.rows import kernels, with_operators

SLUG = "exposed-allreduce"
_ONE_BUCKET_BYTES = 1 << 30


def apply(job: Job, rng: random.Random) -> bool:
    """One bucket for all gradients, or an exchange for each parameter after the backward pass, as the first
    tutorials had it."""
    if not job.is_training:
        return False
    if job.ranks == 1 and rng.random() < 0.6:
        at(job, Moment.AFTER_BACKWARD, SLUG, _average_gradients(job, usual_ranks(rng)))
        return True
    job.ranks, job.bucket_bytes = usual_ranks(rng), _ONE_BUCKET_BYTES
    return True


def _average_gradients(job: Job, ranks: int) -> Hook:
    parameters = trainable(job.model)

    @torch.no_grad()
    def run(step: Step) -> None:
        for parameter in parameters:
            if parameter.grad is not None:
                all_reduce([parameter.grad])
                parameter.grad.div_(ranks)

    return run


def spoils(timeline: Timeline) -> BoolArray:
    """All communication."""
    return with_operators(timeline, kernels(timeline, (KernelClass.COMMUNICATION,)))


def apply_control(job: Job, rng: random.Random) -> bool:
    """Several ranks whose exchanges hide behind the backward pass, bucket by bucket."""
    if not job.is_training or job.ranks > 1:
        return False
    job.ranks = usual_ranks(rng)
    job.bucket_bytes = rng.choice((10 << 20, 25 << 20))
    return True


FAULT = Fault(SLUG, apply, spoils, on=frozenset({"device"}), excludes=frozenset({"sync-every-micro-step"}))
CONTROL = Control("exchanges beside the backward pass", apply_control)
