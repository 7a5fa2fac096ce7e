"""single-tensor-optimizer: the optimizer updates one parameter after the other."""

from __future__ import annotations

import random
from collections.abc import Iterable

import torch
from torch import nn

from ..fault import Control, Fault
from ..job import Job
from .shared.optimizers import mark_steps
from .shared.places import trainable

SLUG = "single-tensor-optimizer"
_LEAST_PARAMETERS = 12


def apply(job: Job, rng: random.Random) -> bool:
    """`foreach=False`, a group for each parameter, or an optimizer written by hand."""
    if not job.is_training or len(trainable(job.model)) < _LEAST_PARAMETERS:
        return False
    make = rng.choice((_single_adamw, _single_adam, _single_sgd, _single_rmsprop, _group_each, ByHand))

    def make_optimizer(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return mark_steps(make(list(parameters)), SLUG)

    job.make_optimizer = make_optimizer
    return True


def _single_adamw(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-4, foreach=False)


def _single_adam(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=1e-4, weight_decay=1e-4, amsgrad=True, foreach=False)


def _single_sgd(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9, weight_decay=1e-4, foreach=False)


def _single_rmsprop(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.RMSprop(parameters, lr=1e-5, momentum=0.9, foreach=False)


def _group_each(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    groups = [{"params": [parameter], "lr": 1e-4} for parameter in parameters]
    return torch.optim.AdamW(groups, foreach=True)


class ByHand(torch.optim.Optimizer):
    """Lion, as copied from a paper's repository: a loop over the parameters."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        super().__init__(parameters, {"lr": 1e-5, "decay": 1e-2})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """One update."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                momentum = state.setdefault("momentum", torch.zeros_like(parameter))
                parameter.mul_(1 - group["lr"] * group["decay"])
                update = momentum.mul(0.9).add(parameter.grad, alpha=0.1).sign_()
                parameter.add_(update, alpha=-group["lr"])
                momentum.mul_(0.99).add_(parameter.grad, alpha=0.01)


def apply_control(job: Job, rng: random.Random) -> bool:
    """Two groups, with and without weight decay, updated together."""
    if not job.is_training:
        return False

    def make_optimizer(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        kept = list(parameters)
        flat, others = [one for one in kept if one.dim() < 2], [one for one in kept if one.dim() >= 2]
        groups = [{"params": part, "weight_decay": decay} for part, decay in ((flat, 0.0), (others, 0.05)) if part]
        return torch.optim.AdamW(groups, lr=1e-4, foreach=True)

    job.make_optimizer = make_optimizer
    return True


FAULT = Fault(SLUG, apply)
CONTROL = Control("two groups updated together", apply_control)
