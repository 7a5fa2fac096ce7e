"""per-parameter-ema: the averaged copy of the weights is updated one parameter after the other."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable

import torch
from torch import Tensor
from torch.optim.swa_utils import get_ema_multi_avg_fn

from ..fault import Control, Fault
from ..job import Job, Moment, Step
from .shared.chance import count
from .shared.places import at, trainable

SLUG = "per-parameter-ema"
Update = Callable[[Tensor, Tensor], object]
_LEAST_PARAMETERS = 8


def apply(job: Job, rng: random.Random) -> bool:
    """A loop over the parameters, or over the whole state dict, in one of the ways it is written; one to three
    copies."""
    if not job.is_training or len(trainable(job.model)) < _LEAST_PARAMETERS:
        return False
    averages = [copy.deepcopy(job.model.state_dict()) for _ in range(count(rng, 1, 3))]
    update = rng.choice((_mul_add, _lerp, _assigned, _difference))
    names = frozenset(averages[0]) if rng.random() < 0.5 else frozenset(dict(job.model.named_parameters()))

    @torch.no_grad()
    def run(step: Step) -> None:
        for average in averages:
            for name, value in step.job.model.state_dict().items():
                if name in names and value.is_floating_point():
                    average[name] = average[name].to(value.device)
                    update(average[name], value)

    at(job, Moment.AFTER_OPTIMIZER, SLUG, run)
    return True


def _mul_add(average: Tensor, value: Tensor) -> None:
    average.mul_(0.999).add_(value, alpha=0.001)


def _lerp(average: Tensor, value: Tensor) -> None:
    average.lerp_(value, 0.001)


def _assigned(average: Tensor, value: Tensor) -> None:
    average.copy_(0.999 * average + 0.001 * value)


def _difference(average: Tensor, value: Tensor) -> None:
    average.sub_((average - value) * 0.001)


def apply_control(job: Job, rng: random.Random) -> bool:
    """All parameters averaged together."""
    if not job.is_training:
        return False
    averages: list[Tensor] = []
    average = get_ema_multi_avg_fn(0.999)

    @torch.no_grad()
    def run(step: Step) -> None:
        values: list[Tensor] = list(step.job.model.parameters())
        if not averages:
            averages.extend(value.detach().clone() for value in values)
        average(averages, values, step.number)

    job.hook(Moment.AFTER_OPTIMIZER, run)
    return True


FAULT = Fault(SLUG, apply)
CONTROL = Control("parameters averaged together", apply_control)
