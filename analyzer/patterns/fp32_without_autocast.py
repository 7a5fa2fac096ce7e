"""fp32-without-autocast: matrix kernels run in fp32 on the plain cores of a device that has tensor cores.

Why it is slow: tensor cores multiply half-precision numbers several times faster, and half-size tensors halve the
memory traffic of everything between.
Trace: SIMT fp32 GEMM and convolution kernels own a good part of the device's time.
Edit: matrix kernels take the time of half-precision ones at 40 % of their peak, a rate that cuDNN's and cuBLAS's
kernels reach on ordinary layer sizes, while fp32 kernels run near theirs; never below 0.35 nor above 0.7 of the
recorded time. Pointwise fp32 kernels of the forward and backward pass move half the bytes: 0.6 with the casts.
Where the host is late, a faster device gains nothing yet; then the saving is told as what comes once the host keeps up
(batches loaded beside the step, the rest of the host's time halved, as a run without the profiler or a compiled model
has it).
Gate: devices without tensor cores; runs that noted autocast as on; traces whose matrix work is TF32 or half already
(autocast gains little there); steps in which fp32 matrix kernels are a small part, because loading or launching is what
they wait for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import is_among, is_named
from ..timeline.edit import Edit, Scale
from ..timeline.kernel_names import Precision
from ..timeline.model import KernelClass, Phase, Timeline
from ..timeline.roots import by_model_call
from ..timeline.select import (
    count_per_step,
    device_rows,
    events_of,
    host_rows,
    in_typical_step,
    outermost,
    steady,
    us_per_step,
)
from ..trace.model import IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site
from .precision import POINTWISE, of_class, of_precision, plain_matrix_kernels, share_of_kernel_time, switches

_HALF = re.compile(r"BFloat16|[hH]alf")
_MIN_SHARE = 0.15
"""Share of kernel time, and of the step, below which fp32 matrix kernels are not what the step is made of."""
_PROMPT_HOST_FACTOR = 0.5
_PEAK_SHARE = 0.4
_FACTOR_RANGE = (0.35, 0.7)
_UNKNOWN_FACTOR = 0.5
_POINTWISE_FACTOR = 0.6


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per model call site."""
    if timeline.is_cpu_only or not timeline.device.has_tensor_cores or switches(timeline).autocast:
        return
    device = device_rows(timeline)
    matrix = plain_matrix_kernels(timeline, device)
    share = share_of_kernel_time(timeline, matrix)
    on_tensor_cores = of_class(timeline, device, (KernelClass.GEMM_TENSOR_CORE, KernelClass.CONV_TENSOR_CORE))
    if share < _MIN_SHARE or share < share_of_kernel_time(timeline, on_tensor_cores):
        return
    if us_per_step(timeline, matrix) < _MIN_SHARE * timeline.step_us:
        return
    pointwise = of_precision(timeline, of_class(timeline, device, POINTWISE), (Precision.UNKNOWN, Precision.FP32))
    pointwise = pointwise[_names_float(timeline, pointwise) & (timeline.phase[pointwise] != Phase.OPTIMIZER)]
    factor = _matrix_factor(timeline)
    calls = by_model_call(timeline, np.sort(np.concatenate([matrix, pointwise])))
    occurrences = [_occurrence(anchor, rows, matrix, factor) for anchor, rows in calls]
    evidence = (
        Evidence(
            "kernels",
            "fp32 matrix kernels per step",
            count_per_step(timeline, matrix),
            "",
            events_of(timeline, in_typical_step(timeline, matrix)),
        ),
        Evidence("share", "their share of kernel time", round(100 * share), "%"),
        Evidence("factor", "matrix time in half precision over fp32, by the peaks", factor, ""),
    )
    for group in by_site(timeline, occurrences):
        yield Candidate(
            what="matrix kernels run in fp32 beside idle tensor cores",
            remedy="autocast",
            occurrences=group,
            evidence=evidence,
            first=_prompt_host(timeline),
            first_clause="once the host keeps up",
            probability=0.9,
        )


def _occurrence(anchor: int, rows: IntArray, matrix: IntArray, factor: float) -> Occurrence:
    is_matrix = is_among(rows, matrix)
    edit = Edit(scales=(Scale(rows[is_matrix], factor), Scale(rows[~is_matrix], _POINTWISE_FACTOR)))
    return Occurrence(anchor, edit, rows)


def _prompt_host(timeline: Timeline) -> Edit:
    """A host that is never late: batches are loaded beside the step, and the rest takes half the time."""
    loading = outermost(timeline, steady(timeline, host_rows(timeline, Phase.DATA)))
    return Edit(overlapped=loading, host_factor=_PROMPT_HOST_FACTOR)


def _matrix_factor(timeline: Timeline) -> float:
    fp32, half = timeline.device.fp32_tflops, timeline.device.half_tflops
    if np.isnan(fp32) or np.isnan(half):
        return _UNKNOWN_FACTOR
    return round(float(np.clip(fp32 / (half * _PEAK_SHARE), *_FACTOR_RANGE)), 2)


def _names_float(timeline: Timeline, rows: IntArray) -> np.ndarray:
    """Whether a kernel's name does not say that it works on halves (a name that says nothing counts as fp32)."""
    return ~is_named(timeline.trace, rows, _HALF.search)


PATTERN = Pattern(
    code="TAP401",
    slug="fp32-without-autocast",
    title="fp32 beside idle tensor cores",
    fix=FixKind.UNSAFE,
    find=find,
    needs=("device",),
    group="precision",
    stage=Stage.HARDWARE,
)
