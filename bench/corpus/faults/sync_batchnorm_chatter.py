"""sync-batchnorm-chatter: batch norms exchange their statistics among the ranks, layer by layer."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from .. import surgery
from ..fault import Fault
from ..job import Job
from ..marks import spoiled
from .shared.device import all_reduce, usual_ranks

SLUG = "sync-batchnorm-chatter"
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def apply(job: Job, rng: random.Random) -> bool:
    """Most batch norms exchange means and variances forward, and their gradients backward."""
    norms = surgery.find(job.model, nn.Module, lambda part: isinstance(part, _NORMS)) if job.is_training else []
    chosen = surgery.choose(norms, rng, least=0.6)
    for place in chosen:
        surgery.wrap_forward(place.part, _synchronized)
    if chosen and job.ranks == 1:
        job.ranks = usual_ranks(rng)
    return bool(chosen)


def _synchronized(original: Callable[..., Any], tensor: Tensor) -> Tensor:
    channels = tensor.shape[1]
    with spoiled(SLUG):
        all_reduce([tensor.new_empty(2 * channels + 1).float()])
    normalized = original(tensor)
    if normalized.requires_grad:
        normalized.register_hook(_reduce_gradients)
    return normalized


def _reduce_gradients(gradient: Tensor) -> None:
    with spoiled(SLUG):
        all_reduce([gradient.new_empty(2 * gradient.shape[1]).float()])


FAULT = Fault(SLUG, apply, on=frozenset({"device"}))
