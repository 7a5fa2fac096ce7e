"""cudnn-autotune-off: convolutions of fixed sizes run on kernels that cuDNN guessed."""

from __future__ import annotations

import random
import re

from torch import nn

from torchtraceap.analyzer.timeline.columns import is_named
from torchtraceap.analyzer.timeline.model import KernelClass, Timeline
from torchtraceap.analyzer.trace.model import BoolArray

from .. import surgery
from ..fault import Fault
from ..job import Job
from .shared.rows import kernels, with_operators

SLUG = "cudnn-autotune-off"
_LEAST_CONVOLUTIONS = 3
_GUESSED = re.compile(
    r"(^|[ :_])fft[12]d_|implicit_convolve_sgemm|implicit_precomp|precomputed_convolve|explicit_convolve|[iI]m2[cC]ol"
    r"|pointwise_mult_and_sum_complex|compute_gemm_pointers"
)
_CLASSES = (*KernelClass,)


def apply(job: Job, rng: random.Random) -> bool:
    """`cudnn.benchmark` left at its default."""
    if not job.cudnn_benchmark or not has_convolutions(job.model, _LEAST_CONVOLUTIONS):
        return False
    job.cudnn_benchmark = False
    return True


def has_convolutions(model: nn.Module, least: int) -> bool:
    """Whether a model has so many convolutions or more."""
    kinds = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d, nn.ConvTranspose3d)
    return len(surgery.find(model, nn.Module, lambda part: isinstance(part, kinds))) >= least


def spoils(timeline: Timeline) -> BoolArray:
    """Kernels of the kinds that a trial seldom chooses."""
    rows = kernels(timeline, _CLASSES)
    return with_operators(timeline, rows[is_named(timeline.trace, rows, _GUESSED.search)])


FAULT = Fault(SLUG, apply, spoils, on=frozenset({"device"}), excludes=frozenset({"cudnn-autotune-thrash"}))
