"""grad-scaler-stall: the gradient scaler reads whether gradients overflowed, before the optimizer may begin."""

from __future__ import annotations

import random

import torch
from torch import nn

from ..fault import Fault
from ..job import Job, Moment, Step
from ..marks import spoiled
from .shared.places import trainable

SLUG = "grad-scaler-stall"


class Unstepped:
    """Stands for the optimizer before the scaler, which checks gradients through it; the step itself comes later."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.param_groups = [{"params": parameters}]

    def step(self) -> None:
        """Nothing."""


def apply(job: Job, rng: random.Random) -> bool:
    """A `GradScaler`, though bf16 needs none, for one optimizer or for one for each part of the model."""
    if not job.is_training:
        return False
    parameters = trainable(job.model)
    parts = rng.choice((1, 1, 2, min(8, len(parameters))))
    optimizers = [Unstepped(parameters[part::parts]) for part in range(parts)]
    scalers: dict[torch.device, torch.amp.GradScaler] = {}

    def scale(step: Step) -> None:
        scaler = scalers.setdefault(step.device, torch.amp.GradScaler(step.device.type, init_scale=1.0))
        assert step.loss is not None
        with spoiled(SLUG):
            step.loss = scaler.scale(step.loss)

    def check(step: Step) -> None:
        scaler = scalers[step.device]
        with spoiled(SLUG):
            for optimizer in optimizers:
                scaler.step(optimizer)  # pyright: ignore[reportArgumentType]
            scaler.update()

    job.hook(Moment.AFTER_FORWARD, scale)
    job.hook(Moment.AFTER_BACKWARD, check)
    return True


FAULT = Fault(SLUG, apply, on=frozenset({"device"}))
