"""zero-grad-to-zero: gradients are filled with zeros in every step, and the next ones added to them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable

import numpy as np
import torch
from torch import nn

from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.model import NONE, BoolArray

from ..fault import Fault
from ..job import Job
from .shared.optimizers import marking
from .shared.places import trainable
from .shared.rows import named

SLUG = "zero-grad-to-zero"
_LEAST_PARAMETERS = 8
_ACCUMULATES = re.compile(r"^torch::autograd::AccumulateGrad$")


def apply(job: Job, rng: random.Random) -> bool:
    """`set_to_none=False`, or a loop over the parameters that does the same."""
    if not job.is_training or not job.zero_to_none or len(trainable(job.model)) < _LEAST_PARAMETERS:
        return False
    make_optimizer, by_hand = job.make_optimizer, rng.random() < 0.6

    def make(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        optimizer = make_optimizer(parameters)

        def fill(set_to_none: bool = False) -> None:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.grad.detach_().zero_()

        optimizer.zero_grad = marking(fill if by_hand else optimizer.zero_grad, SLUG)
        return optimizer

    job.make_optimizer, job.zero_to_none = make, False
    return True


def spoils(timeline: Timeline) -> BoolArray:
    """Additions to gradients that were kept."""
    parent = timeline.tree.parent
    is_node = named(timeline, _ACCUMULATES.search)
    return named(timeline, lambda name: name == "aten::add_") & np.where(parent != NONE, is_node[parent], False)


FAULT = Fault(SLUG, apply, spoils)
