"""slow-grouped-conv: grouped convolutions run far below what their work and their bytes need.

Why it is slow: a grouped convolution has a fraction of a dense one's work, but the libraries have good kernels only for
some group widths, layouts and number formats; for others they run a generic one, slower than a dense convolution of
the same size. In half precision and channels_last, old cuDNN versions took 143 ms where fp32 takes 4.
Trace: convolutions with groups that take several times the longer of their arithmetic (at the rate of the recording's
dense convolutions, on a device at its peak) and of reading and writing their tensors.
Edit: on the CPU, groups of 3 to 15 channels in NCHW take 0.65 of their time with their input copied to channels_last,
0.8 backward (measured with torch 2.13, one thread, seven sizes: 0.32 to 0.65 on maps of 38 pixels a side and more, 0.58
to 1.07 on smaller ones; groups of 8 or 16 channels are fast in either). On a device the layer in float32 takes four
times what its bytes need.
Gate: depthwise convolutions at their bytes' speed; on the CPU group widths and layouts for which neither layout was
measured faster; on a device float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import is_among, median
from ..timeline.convolution_calls import ConvCalls, ConvShape, backward_rows, convolution_calls, work_rows
from ..timeline.edit import Edit, Scale
from ..timeline.model import Timeline
from ..timeline.op_inputs import ELEMENT_BYTES
from ..timeline.select import count_per_step, events_of, in_typical_step, is_noticeable
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site
from .rates import HALF_TYPES, peak_tflops, product_rate, usual_rate

_CPU_GB_PER_S = 8.0
"""What one core reads and writes, as depthwise convolutions were measured to reach."""
_SLOW_ON_CPU, _SLOW_ON_DEVICE = 3.0, 8.0
"""Times the least time, from which a convolution is slow."""
_GROUP_WIDTHS = frozenset(range(3, 16)) - {8}
_CPU_FORWARD, _CPU_BACKWARD = 0.65, 0.8
_DEVICE_MULTIPLE = 4.0
_DEVICE_RANGE = (0.1, 0.7)


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site of slow grouped convolutions."""
    calls = convolution_calls(timeline)
    grouped = calls.chosen([shape.groups > 1 and _may_gain(timeline, shape) for shape in calls.shapes])
    if not is_noticeable(timeline, work_rows(timeline, grouped.rows)):
        return
    least_ns = _least_ns(timeline, grouped, _dense_rate(timeline, calls))
    usual_ns = _usual_ns(grouped)
    bound = _SLOW_ON_CPU if timeline.is_cpu_only else _SLOW_ON_DEVICE
    is_slow = np.isfinite(least_ns) & (usual_ns > bound * least_ns)
    slow, least_ns, usual_ns = grouped.chosen(is_slow), least_ns[is_slow], usual_ns[is_slow]
    occurrences = [
        _occurrence(timeline, int(row), *_factors(timeline, least, usual), after)
        for row, least, usual, after in zip(slow.rows, least_ns, usual_ns, backward_rows(timeline, slow), strict=True)
    ]
    for group in by_site(timeline, occurrences):
        rows = np.array([occurrence.anchor for occurrence in group])
        which = is_among(slow.rows, rows)
        shape = slow.chosen(which).shapes[0]
        yield Candidate(
            what="grouped convolutions run far slower than their work",
            remedy="channels_last for this layer" if timeline.is_cpu_only else "float32 for this layer",
            occurrences=group,
            evidence=(
                Evidence("groups", "groups", float(shape.groups), ""),
                Evidence("width", "channels per group", float(_width(shape)), ""),
                Evidence(
                    "convolutions",
                    "such convolutions per step",
                    count_per_step(timeline, rows),
                    "",
                    events_of(timeline, in_typical_step(timeline, rows)),
                ),
                Evidence(
                    "multiple",
                    "times what its work and bytes need",
                    round(median(usual_ns[which] / least_ns[which]), 1),
                    "",
                ),
            ),
            probability=0.7,
        )


def _width(shape: ConvShape) -> int:
    return shape.weight[1] if len(shape.weight) > 1 else 0


def _may_gain(timeline: Timeline, shape: ConvShape) -> bool:
    """Whether a remedy is known for such a convolution."""
    if shape.is_transposed or len(shape.weight) < 3:
        return False
    if timeline.is_cpu_only:
        return shape.axes == 2 and shape.channels_last is False and _width(shape) in _GROUP_WIDTHS
    return shape.dtype in HALF_TYPES


def _dense_rate(timeline: Timeline, calls: ConvCalls) -> float:
    """GFLOP/s that work is held against."""
    if not timeline.is_cpu_only:
        return peak_tflops(timeline, HALF_TYPES[0]) * 1000.0
    dense = calls.chosen([shape.groups == 1 and max(shape.kernel, default=1) > 1 for shape in calls.shapes])
    known = np.isfinite(dense.flops) & (dense.time_ns > 0)
    if not known.any():
        return product_rate(timeline, "float")
    return usual_rate(dense.flops[known], dense.time_ns[known])


def _least_ns(timeline: Timeline, calls: ConvCalls, rate: float) -> np.ndarray:
    """The longer of each call's arithmetic and traffic; NaN where neither is known."""
    bandwidth = _CPU_GB_PER_S if timeline.is_cpu_only else timeline.device.memory_gb_per_s
    moved = np.array([_bytes(shape, flops) for shape, flops in zip(calls.shapes, calls.flops, strict=True)])
    return np.fmax(calls.flops / rate, moved / bandwidth)


def _bytes(shape: ConvShape, flops: float) -> float:
    """Input, output and weight, once each."""
    output = flops / (2.0 * prod(shape.weight[1:]))
    return (prod(shape.data) + output + prod(shape.weight)) * ELEMENT_BYTES.get(shape.dtype, 4)


def _usual_ns(calls: ConvCalls) -> np.ndarray:
    """Time of each call, as the median over calls of its shape."""
    usual = {shape: median(calls.time_ns[[one == shape for one in calls.shapes]]) for shape in set(calls.shapes)}
    return np.array([usual[shape] for shape in calls.shapes])


def _factors(timeline: Timeline, least_ns: float, usual_ns: float) -> tuple[float, float]:
    if timeline.is_cpu_only:
        return _CPU_FORWARD, _CPU_BACKWARD
    # Float32 moves twice the bytes.
    factor = round(float(np.clip(2 * _DEVICE_MULTIPLE * least_ns / usual_ns, *_DEVICE_RANGE)), 2)
    return factor, factor


def _occurrence(timeline: Timeline, row: int, forward: float, backward: float, after: np.ndarray) -> Occurrence:
    here, behind = work_rows(timeline, np.array([row])), work_rows(timeline, after)
    edit = Edit(scales=(Scale(here, forward), Scale(behind, backward)))
    return Occurrence(row, edit, np.sort(np.concatenate([here, behind])))


PATTERN = Pattern(
    code="TAP509",
    slug="slow-grouped-conv",
    title="Slow grouped convolutions",
    fix=FixKind.UNSAFE,
    find=find,
    needs=("shapes",),
    group="inefficient_conv",
    stage=Stage.IMPLEMENTATION,
)
