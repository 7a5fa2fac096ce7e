"""redundant-collective: a few numbers for the log are reduced among the ranks in every step."""

from __future__ import annotations

import random

import torch

from ..fault import Fault
from ..job import Job, Moment, Step
from .shared.chance import count
from .shared.device import all_reduce, usual_ranks
from .shared.places import at, tensors

SLUG = "redundant-collective"


def apply(job: Job, rng: random.Random) -> bool:
    """One to 24 reductions of losses and metrics, each waited for; some are read as well."""
    if not job.is_training:
        return False
    values, reads = count(rng, 1, 24), rng.random() < 0.4
    moment = rng.choice((Moment.AFTER_FORWARD, Moment.AFTER_BACKWARD, Moment.END))
    if job.ranks == 1:
        job.ranks = usual_ranks(rng)

    @torch.no_grad()
    def reduce(step: Step) -> None:
        parts = [tensor for tensor in tensors((step.loss, step.outputs)) if tensor.is_floating_point()]
        for number in range(values):
            value = parts[number % len(parts)].mean().reshape(1)
            all_reduce([value])
            value = value / job.ranks
            if reads:
                value.item()

    at(job, moment, SLUG, reduce)
    return True


FAULT = Fault(SLUG, apply, on=frozenset({"device"}))
