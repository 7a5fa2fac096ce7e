"""per-parameter-grad-scan: a loop over the parameters looks at each gradient, and mostly reads what it finds."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..fault import Control, Fault
from ..job import Job, Moment, Step
from .shared.places import at, trainable

SLUG = "per-parameter-grad-scan"
Look = Callable[[Tensor], object]
_LEAST_PARAMETERS = 8


def apply(job: Job, rng: random.Random) -> bool:
    """Norms, finiteness or extremes of each gradient, of some or all parameters."""
    parameters = trainable(job.model)
    if not job.is_training or len(parameters) < _LEAST_PARAMETERS:
        return False
    look = rng.choice((_norm, _finite, _extremes, _clamped))
    every = rng.choice((1, 1, 2, 4))

    @torch.no_grad()
    def run(step: Step) -> None:
        for parameter in parameters[::every]:
            if parameter.grad is not None:
                look(parameter.grad)

    at(job, Moment.AFTER_BACKWARD, SLUG, run)
    return True


def _norm(gradient: Tensor) -> float:
    return gradient.detach().norm(2).item() ** 2


def _finite(gradient: Tensor) -> None:
    if not torch.isfinite(gradient).all():
        gradient.zero_()


def _extremes(gradient: Tensor) -> tuple[float, float]:
    return float(gradient.abs().max()), float(gradient.mean())


def _clamped(gradient: Tensor) -> None:
    scale = 1.0 / max(1.0, gradient.norm().item())
    gradient.mul_(scale)


def apply_control(job: Job, rng: random.Random) -> bool:
    """`clip_grad_norm_`: one norm over all gradients, not read."""
    if not job.is_training:
        return False
    parameters: list[nn.Parameter] = trainable(job.model)

    def clip(step: Step) -> None:
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)

    job.hook(Moment.AFTER_BACKWARD, clip)
    return True


FAULT = Fault(SLUG, apply)
CONTROL = Control("gradients clipped together", apply_control)
