"""float64-leak: a part of the model or of the loss runs in double precision that nobody asked for."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .. import surgery
from ..fault import Fault
from ..job import Job
from ..marks import spoiled
from .shared.chance import count
from .shared.places import after_layers, after_model, by_sample

SLUG = "float64-leak"


def apply(job: Job, rng: random.Random) -> bool:
    """A factor from numpy after some layers, a loss in doubles, or layers whose weights are doubles."""
    style = rng.choice(("factor", "loss", "weights"))
    if style == "weights" and _double_layers(job, rng):
        return True
    if style == "loss":
        rounds = count(rng, 2, 20)
        after_model(job, SLUG, lambda outputs: _distance(by_sample(outputs, job.batch_size), rounds))
        return True
    return after_layers(job, rng, SLUG, _scaled_by_numpy, least=0.1)


def _scaled_by_numpy(output: Tensor) -> Tensor:
    factor = torch.from_numpy(np.full(output.shape[-1], 1.0)).to(output.device)
    scaled = output * factor + 1e-6
    return scaled.sub(scaled.mean() * 1e-3).to(output.dtype)


def _distance(outputs: Tensor, rounds: int) -> Tensor:
    values = outputs.double()
    for _ in range(rounds):
        values = torch.tanh(values * 0.5) + 1e-3
    return values.square().mean().float() * 0.01


def _double_layers(job: Job, rng: random.Random) -> bool:
    """Weights of linear layers and convolutions that came from numpy arrays; under autocast doubles stay doubles."""
    kinds = (nn.Linear, nn.Conv2d)
    places = surgery.find(job.model, nn.Module, lambda part: type(part) in kinds)
    chosen = rng.sample(places, min(count(rng, 1, 6), len(places)))
    for place in chosen:
        surgery.wrap_forward(place.part, partial(_in_doubles, place.part))
    return bool(chosen)


def _in_doubles(part: nn.Module, original: Callable[..., Any], tensor: Tensor) -> Tensor:
    if next(part.parameters()).dtype != torch.float64:
        part.double()
    with spoiled(SLUG):
        return original(tensor.double()).to(tensor.dtype)


FAULT = Fault(SLUG, apply)
