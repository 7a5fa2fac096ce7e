"""tf32-off: fp32 without the tensor cores' TF32, on devices that have it."""

from __future__ import annotations

import random

from torchtraceap.analyzer.timeline.kernel_names import Precision
from torchtraceap.analyzer.timeline.model import KernelClass, Timeline
from torchtraceap.analyzer.trace.model import BoolArray

from ..fault import Control, Fault
from ..job import Job
from .shared.rows import kernels, no_rows, of_precision, with_operators

SLUG = "tf32-off"
_PLAIN = (KernelClass.GEMM_SIMT, KernelClass.CONV_SIMT)


def apply(job: Job, rng: random.Random) -> bool:
    """Neither autocast nor TF32."""
    if job.autocast is None:
        return False
    job.autocast, job.tf32 = None, False
    return True


def spoils(timeline: Timeline) -> BoolArray:
    """Products and convolutions of fp32 numbers on plain cores, where the device has TF32."""
    if timeline.is_cpu_only or not timeline.device.has_tf32:
        return no_rows(timeline)
    rows = of_precision(timeline, kernels(timeline, _PLAIN), (Precision.UNKNOWN, Precision.FP32))
    return with_operators(timeline, rows)


def apply_control(job: Job, rng: random.Random) -> bool:
    """TF32 off beside autocast, which leaves nothing for it to do."""
    if job.autocast is None:
        return False
    job.tf32 = False
    return True


FAULT = Fault(
    SLUG,
    apply,
    spoils,
    on=frozenset({"device"}),
    excludes=frozenset({"fp32-without-autocast"}),
    implies=frozenset({"fp32-without-autocast"}),
)
CONTROL = Control("TF32 off beside autocast", apply_control)
