"""conv-bias-before-norm: convolutions add a bias that the batch norm behind them takes away again."""

from __future__ import annotations

import random
from itertools import pairwise

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.model import BoolArray

from ..fault import Fault
from ..job import Job
from .shared.operators import parents_named
from .shared.parts import CONVOLUTIONS, Convolution
from .shared.rows import no_rows

SLUG = "conv-bias-before-norm"
_CALLS = ("aten::_convolution", "aten::cudnn_convolution", "aten::miopen_convolution", "aten::convolution")


def apply(job: Job, rng: random.Random) -> bool:
    """All convolutions that stand before a batch norm in training get a bias, as is the default."""
    if not job.is_training:
        return False
    wanted = [conv for conv in convs_before_norms(job.model) if conv.bias is None]
    for conv in wanted:
        conv.bias = nn.Parameter(torch.zeros(conv.out_channels))
    if wanted:
        job.settings[SLUG] = "bias"
    return bool(wanted)


def convs_before_norms(model: nn.Module) -> list[Convolution]:
    """Convolutions with a batch norm right behind them in their parent."""
    return [
        conv
        for parent in model.modules()
        for conv, norm in pairwise(parent.children())
        if isinstance(conv, CONVOLUTIONS) and isinstance(norm, _BatchNorm) and conv.out_channels == norm.num_features
    ]


def spoils(timeline: Timeline) -> BoolArray:
    """The additions inside of convolutions, and the sums inside of their backward."""
    found = no_rows(timeline)
    for name in ("aten::add_", "aten::add"):
        found |= parents_named(timeline, name, _CALLS)
    return found | parents_named(timeline, "aten::sum", ("aten::convolution_backward", "ConvolutionBackward0"))


FAULT = Fault(SLUG, apply, spoils=spoils, on=frozenset(("device",)))
