"""misaligned-gemm: products on tensor cores with a dimension that is no multiple of 8 halves."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..blocks import Mlp
from ..fault import Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import choose, find, wrap_forward
from .shared.dtypes import HALF

SLUG = "misaligned-gemm"


def apply(job: Job, rng: random.Random) -> bool:
    """The hidden layer of some Mlps gets an odd number of units more, which count nothing at first."""
    if job.autocast not in HALF:
        return False
    places = choose(find(job.model, Mlp), rng)
    more = rng.choice([1, 3, 5, 9])
    for place in places:
        _widen(place.part, next(n for n in range(more, 99, 2) if (place.part.fc1.out_features + n) % job.batch_size))
    return bool(places)


@torch.no_grad()
def _widen(mlp: Mlp, more: int) -> None:
    hidden = mlp.fc1.out_features
    first = nn.Linear(mlp.fc1.in_features, hidden + more, bias=mlp.fc1.bias is not None)
    second = nn.Linear(hidden + more, mlp.fc2.out_features, bias=mlp.fc2.bias is not None)
    first.weight[:hidden] = mlp.fc1.weight
    second.weight.zero_()
    second.weight[:, :hidden] = mlp.fc2.weight
    if first.bias is not None:
        first.bias[:hidden] = mlp.fc1.bias
    if second.bias is not None:
        second.bias.copy_(mlp.fc2.bias)
    mlp.fc1, mlp.fc2 = first, second
    for layer in (first, second):
        wrap_forward(layer, _marked)


def _marked(original: Callable, x: Tensor) -> Tensor:
    with spoiled(SLUG):
        return original(x)


FAULT = Fault(SLUG, apply, on=frozenset(("device",)))
