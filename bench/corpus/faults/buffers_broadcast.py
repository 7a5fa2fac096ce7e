"""buffers-broadcast: every forward pass begins with sending the model's buffers to all ranks."""

from __future__ import annotations

import random

import torch
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

from ..fault import Fault
from ..job import Job, Moment, Step
from .shared.device import broadcast, usual_ranks
from .shared.places import at

SLUG = "buffers-broadcast"
_LEAST_BUFFERS = 12


def apply(job: Job, rng: random.Random) -> bool:
    """Buffers of each type flattened, sent, and copied back one by one, as DistributedDataParallel does."""
    if not job.is_training or len(list(job.model.buffers())) < _LEAST_BUFFERS:
        return False
    if job.ranks == 1:
        job.ranks = usual_ranks(rng)

    @torch.no_grad()
    def send(step: Step) -> None:
        buffers = list(step.job.model.buffers())
        for dtype in dict.fromkeys(buffer.dtype for buffer in buffers):
            alike = [buffer for buffer in buffers if buffer.dtype == dtype]
            flat = _flatten_dense_tensors(alike)
            broadcast([flat])
            for buffer, received in zip(alike, _unflatten_dense_tensors(flat, alike), strict=True):
                buffer.copy_(received)

    at(job, Moment.BEFORE_FORWARD, SLUG, send)
    return True


FAULT = Fault(SLUG, apply, on=frozenset({"device"}))
