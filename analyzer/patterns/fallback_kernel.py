"""fallback-kernel: convolutions run in reference code, because the fast library takes no such type or is switched off.

Why it is slow: oneDNN, cuDNN and MIOpen have fast kernels for the usual types and sizes. What they don't take, PyTorch
unfolds into a matrix, sample by sample (`slow_conv*`, `thnn_conv2d`), or the library computes in plain loops
(`naive_conv`, half precision on a CPU without such arithmetic). On the CPU, PyTorch keeps inputs of one small image or
volume to itself, and for volumes it judges the size without their last axis.
Trace: those operators and kernels, at rates far below the recording's matrix products; on the CPU also half-precision
convolutions at a few GFLOP/s.
Edit: float64 takes a fifth of its time in float32 (measured with torch 2.13, one thread: 18.2 to 3.5 ms for 3x3 of 32
channels on 56x56, 25.4 to 4.3 ms dilated, 2.2 to 1.2 ms for 1x1); half precision on such a CPU a tenth (109 to 3.5 ms);
single volumes went from 153 to 12 ms (16 channels, 24x48x48), 4.9 to 0.8 and 35 to 5.5; others, and these, take what
their FLOPs need at the rate of the recording's matrix products, not below a tenth.
Gate: 1x1 convolutions, which PyTorch hands to a matrix product on purpose, small ones, and all that run at a third of
the products' rate or more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import is_among, is_named, median
from ..timeline.convolution_calls import ConvCalls, ConvShape, backward_rows, convolution_calls, work_rows
from ..timeline.edit import Edit, Scale, no_rows
from ..timeline.model import Timeline
from ..timeline.select import (
    count_per_step,
    device_rows,
    events_of,
    in_typical_step,
    inside,
    is_noticeable,
    launched_by,
    steady,
)
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site
from .rates import HALF_TYPES, product_rate

_OPERATOR = re.compile(r"^aten::(_?slow_conv\w*|thnn_conv\w*)$")
_KERNEL = re.compile(r"naive_conv|im2col_kernel|vol2col_kernel|Im2d2Col")
_MIN_FLOPS = 5e6
"""Smaller convolutions are handed to plain code on purpose: calling the library would take longer."""
_FAR_BELOW = 1 / 3
_CPU_RATE = 20.0
"""GFLOP/s that one core reaches in fp32 with the library, where the recording has no products."""
_PLAIN_LOOPS_RATE = 5.0
"""GFLOP/s below which half precision on a CPU is computed in plain loops."""
_LEAST_FACTOR = 0.1
_FLOAT64_FACTOR, _FLOAT64_POINTWISE_FACTOR, _HALF_FACTOR = 0.2, 0.5, 0.1


@dataclass(frozen=True, slots=True)
class _Reason:
    """Why a convolution falls back, and what would remain of its time."""

    what: str
    remedy: str
    factor: float


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site whose convolutions fall back."""
    calls = convolution_calls(timeline)
    if not len(calls):
        return
    falls = _falls_back(timeline, calls)
    reference = product_rate(timeline, calls.shapes[0].dtype)
    reference = reference if reference > 0 else _CPU_RATE
    reasons = [
        _reason(timeline, shape, rate, bool(fell), reference) if flops >= _MIN_FLOPS else None
        for shape, rate, fell, flops in zip(calls.shapes, _rates(calls), falls, calls.flops, strict=True)
    ]
    slow = calls.chosen([reason is not None for reason in reasons])
    if not is_noticeable(timeline, work_rows(timeline, slow.rows)):
        return
    reason_of = {int(row): reason for row, reason in zip(calls.rows, reasons, strict=True) if reason is not None}
    after = dict(zip(slow.rows.tolist(), backward_rows(timeline, slow), strict=True))
    occurrences = [_occurrence(timeline, row, reason_of[row].factor, after[row]) for row in slow.rows.tolist()]
    for group in by_site(timeline, occurrences):
        rows = np.array([occurrence.anchor for occurrence in group])
        mine = slow.chosen(is_among(slow.rows, rows))
        reason = reason_of[group[0].anchor]
        yield Candidate(
            what=reason.what,
            remedy=reason.remedy,
            occurrences=group,
            evidence=(
                Evidence(
                    "convolutions",
                    "such convolutions per step",
                    count_per_step(timeline, rows),
                    "",
                    events_of(timeline, in_typical_step(timeline, rows)),
                ),
                Evidence("dtype", "number format", mine.shapes[0].dtype.removeprefix("c10::") or "not recorded", ""),
                Evidence("rate", "their rate", round(median(mine.flops / np.maximum(mine.time_ns, 1)), 2), "GFLOP/s"),
                Evidence("products", "rate of the matrix products it is held against", round(reference, 2), "GFLOP/s"),
            ),
            probability=0.85,
        )


def _rates(calls: ConvCalls) -> list[float]:
    """GFLOP/s of each call, the median over calls of its shape."""
    rate = np.nan_to_num(calls.flops / np.maximum(calls.time_ns, 1))
    usual = {shape: median(rate[[one == shape for one in calls.shapes]]) for shape in set(calls.shapes)}
    return [usual[shape] for shape in calls.shapes]


def _falls_back(timeline: Timeline, calls: ConvCalls) -> np.ndarray:
    """For each call, whether it runs a fallback operator or kernel."""
    trace = timeline.trace
    falls = np.zeros(len(calls), dtype=np.bool_)
    rows = steady(timeline, trace.rows(Category.CPU_OP))
    rows = rows[is_named(trace, rows, _OPERATOR.match)]
    owner = inside(timeline, rows, calls.rows)
    falls[owner[owner != NONE]] = True
    device = device_rows(timeline)
    if len(device) and is_named(trace, device, _KERNEL.search).any():
        falls |= [bool(is_named(trace, kernels, _KERNEL.search).any()) for kernels in launched_by(timeline, calls.rows)]
    return falls


def _reason(timeline: Timeline, shape: ConvShape, rate: float, fell: bool, reference: float) -> _Reason | None:
    """Why a call is slow in fallback code; None if it isn't."""
    if timeline.is_cpu_only and shape.dtype in HALF_TYPES and rate < _PLAIN_LOOPS_RATE:
        return _Reason("half-precision convolutions run in plain loops on this CPU", "float32", _HALF_FACTOR)
    if not fell or not rate:
        return None
    is_pointwise = max(shape.kernel, default=1) == 1
    if shape.dtype == "double":
        factor = _FLOAT64_POINTWISE_FACTOR if is_pointwise else _FLOAT64_FACTOR
        return _Reason("float64 convolutions run in fallback code", "float32", factor)
    if is_pointwise or rate >= _FAR_BELOW * reference:
        return None
    factor = round(max(rate / reference, _LEAST_FACTOR), 2)
    if timeline.is_cpu_only and shape.axes == 3 and shape.data[0] == 1:
        return _Reason("3-D convolutions of single volumes run in fallback code", "two volumes at a time", factor)
    return _Reason("convolutions run in fallback code", "the library's kernel", factor)


def _occurrence(timeline: Timeline, row: int, factor: float, after: IntArray) -> Occurrence:
    rows = np.sort(np.concatenate([no_rows(), work_rows(timeline, np.array([row])), work_rows(timeline, after)]))
    return Occurrence(row, Edit(scales=(Scale(rows, factor),)), rows)


PATTERN = Pattern(
    code="TAP511",
    slug="fallback-kernel",
    title="Convolutions in fallback code",
    fix=FixKind.SAFE,
    find=find,
    needs=("shapes",),
    group="inefficient_conv",
    stage=Stage.IMPLEMENTATION,
)
