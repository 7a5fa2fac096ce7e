"""patchify-conv: a convolution whose stride is its kernel cuts patches, and runs far below a matrix product's rate.

Why it is slow: patches do not overlap, so the convolution is one product of the patches with the flattened weight. The
convolution libraries have no kernel for such large kernels and strides (above all in three dimensions) and fall back to
one that reads the input again and again, or to a generic one.
Trace: a convolution with stride equal to the kernel, no padding, dilation or groups, whose FLOPs per second are far
below those of the trace's own matrix products.
Edit: the convolution takes the time of a product of its size at the rate that the trace's matrix products reach (on a
device without any, half the peak of its number format), and of copying its input into patches. Copying was measured on
the CPU (torch 2.13, one thread) at about 30 ns for each stretch of adjacent elements: 2x2 patches of many channels cost
more than they save, 4x4 ones on images and all with 14 or 16 pixels gain. In all, forward: Conv3d 2x16x16 0.44-0.99, a
batch of single 2x14x14 patches 0.23, Conv2d 16x16 0.78-0.91, 4x4 on images 0.41, 2x2 on 96 channels 2.9 of the time.
Gate: strides that were not recorded; what would take over 0.8 of the time; patches of a small share of the step.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import is_among, median
from ..timeline.convolution_calls import ConvCalls, ConvShape, backward_rows, convolution_calls, work_ns, work_rows
from ..timeline.edit import Edit, Scale
from ..timeline.model import Timeline
from ..timeline.op_inputs import ELEMENT_BYTES
from ..timeline.select import count_per_step, events_of, in_typical_step, is_noticeable
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site
from .rates import product_rate

_WORTH_FACTOR = 0.8
"""A convolution that would still take more of its time than this is left alone."""
_RUN_NS = 30.0
"""Copying one stretch of adjacent elements on the CPU."""
_COPY_BANDWIDTH_SHARE = 0.5
"""Of a device's memory bandwidth, for a copy whose stretches are a few elements."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site of patch convolutions that would gain."""
    calls = convolution_calls(timeline)
    calls = calls.chosen([_cuts_patches(shape) for shape in calls.shapes])
    if not is_noticeable(timeline, work_rows(timeline, calls.rows)):
        return
    rate = product_rate(timeline, calls.shapes[0].dtype)
    if not rate > 0:
        return
    factors = _factors(timeline, calls, rate)
    calls, factors = calls.chosen(factors < _WORTH_FACTOR), factors[factors < _WORTH_FACTOR]
    backward = backward_rows(timeline, calls)
    occurrences = [
        _occurrence(timeline, int(row), float(factor), flops / rate, after)
        for row, factor, flops, after in zip(calls.rows, factors, calls.flops, backward, strict=True)
    ]
    shape_of = dict(zip(calls.rows.tolist(), calls.shapes, strict=True))
    for group in by_site(timeline, occurrences):
        rows = np.array([occurrence.anchor for occurrence in group])
        mine = calls.chosen(is_among(calls.rows, rows))
        shape = shape_of[group[0].anchor]
        yield Candidate(
            what=f"a {shape.axes}-D convolution cuts patches far below the rate of a matrix product",
            remedy="one product of the patches with the same weight",
            occurrences=group,
            evidence=(
                Evidence("kernel", "kernel and stride", "x".join(map(str, shape.kernel)), ""),
                Evidence("input", "input", "x".join(map(str, shape.data)), "elements"),
                Evidence(
                    "count",
                    "such convolutions per step",
                    count_per_step(timeline, rows),
                    "",
                    events_of(timeline, in_typical_step(timeline, rows)),
                ),
                Evidence("rate", "their rate", round(median(mine.flops / np.maximum(mine.time_ns, 1)), 2), "GFLOP/s"),
                Evidence("products", "rate of the matrix products it is held against", round(rate, 2), "GFLOP/s"),
            ),
            probability=0.85,
        )


def _cuts_patches(shape: ConvShape) -> bool:
    return (
        shape.axes in (2, 3)
        and not shape.is_transposed
        and shape.groups == 1
        and max(shape.kernel) > 1
        and _spread(shape.stride, shape.axes) == shape.kernel
        and not any(shape.padding)
        and set(shape.dilation) <= {1}
    )


def _spread(values: tuple[int, ...], axes: int) -> tuple[int, ...]:
    return values * axes if len(values) == 1 else values


def _factors(timeline: Timeline, calls: ConvCalls, rate: float) -> np.ndarray:
    """Time of copying and multiplying over the recorded time, which is the median over calls of one shape; 1 where
    sizes are not known."""
    usual_ns = {shape: median(calls.time_ns[[one == shape for one in calls.shapes]]) for shape in set(calls.shapes)}
    recorded_ns = np.array([usual_ns[shape] for shape in calls.shapes])
    copy_ns = np.array([_copy_ns(timeline, shape) for shape in calls.shapes])
    factor = (calls.flops / rate + copy_ns) / np.maximum(recorded_ns, 1)
    return np.where(np.isfinite(factor) & (recorded_ns > 0), factor, 1.0)


def _copy_ns(timeline: Timeline, shape: ConvShape) -> float:
    elements = prod(shape.data)
    if timeline.is_cpu_only:
        return elements / shape.kernel[-1] * _RUN_NS
    bandwidth = timeline.device.memory_gb_per_s * _COPY_BANDWIDTH_SHARE
    return 2 * elements * ELEMENT_BYTES.get(shape.dtype, 4) / bandwidth if bandwidth > 0 else 0.0


def _occurrence(timeline: Timeline, row: int, factor: float, product_ns: float, backward: np.ndarray) -> Occurrence:
    """The forward and the backward as products; the backward's gradient of the weight is one of the same size."""
    forward = work_rows(timeline, np.array([row]))
    after = work_rows(timeline, backward)
    backward_ns = float(work_ns(timeline, backward).sum()) if len(backward) else 0.0
    backward_factor = min(product_ns / backward_ns, 1.0) if backward_ns > 0 else 1.0
    scales = [Scale(forward, round(factor, 2))]
    if backward_factor < _WORTH_FACTOR:
        scales.append(Scale(after, round(backward_factor, 2)))
    rows = np.sort(np.concatenate([scale.rows for scale in scales]))
    return Occurrence(row, Edit(scales=tuple(scales)), rows)


PATTERN = Pattern(
    code="TAP510",
    slug="patchify-conv",
    title="Patches cut by a convolution",
    fix=FixKind.SAFE,
    find=find,
    needs=("shapes",),
    group="inefficient_conv",
    stage=Stage.IMPLEMENTATION,
)
