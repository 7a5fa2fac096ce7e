"""The forward convolutions of the steady steps, one by one: sizes, layout, time and work, as several rules ask them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..trace.model import NONE, Dims, FloatArray, IntArray, OpInputs
from ..trace.scalars import whole_number
from .columns import is_named
from .memo import once
from .model import Timeline
from .op_inputs import numbers, of_each
from .select import backward_of, backward_ops, inside, launched_by, ops_named

_TRANSPOSED = ("aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d")
_NAMES = (
    *("aten::conv1d", "aten::conv2d", "aten::conv3d", *_TRANSPOSED, "aten::convolution", "aten::_convolution"),
    *("aten::cudnn_convolution", "aten::miopen_convolution", "aten::mkldnn_convolution"),
)
_GROUPS_AT = {3: 6, 4: 8}
"""Where the number of groups is recorded, by whether the call is `conv2d` and its kin or `convolution`."""


@dataclass(frozen=True, slots=True)
class ConvShape:
    """What was recorded of one convolution's inputs; () and "" where nothing was."""

    data: Dims
    weight: Dims
    has_bias: bool
    stride: Dims
    padding: Dims
    dilation: Dims
    groups: int
    dtype: str
    strides: Dims
    """How the input lies in memory."""
    is_transposed: bool = False

    @property
    def axes(self) -> int:
        """Spatial axes: 2 of an image, 3 of a volume or a video; 0 where sizes were not recorded."""
        return max(len(self.weight) - 2, 0)

    @property
    def kernel(self) -> Dims:
        """The kernel's size along each axis."""
        return self.weight[2:]

    @property
    def channels_last(self) -> bool | None:
        """Whether the input lies in channels_last; None where it may be both (one channel, one pixel) or is unknown."""
        return lies_channels_last(self.data, self.strides)


@dataclass(frozen=True, slots=True)
class ConvCalls:
    """Convolutions in time order. Arrays have shape (calls,)."""

    rows: IntArray
    """The outermost operator of each."""
    shapes: tuple[ConvShape, ...]
    time_ns: IntArray
    """Device time of its work; on the CPU the operator's own time."""
    flops: FloatArray
    """NaN where sizes were not recorded."""

    def __len__(self) -> int:
        return len(self.rows)

    def chosen(self, which: list[bool] | np.ndarray) -> ConvCalls:
        """Those calls that `which` says."""
        at = np.flatnonzero(np.asarray(which, dtype=np.bool_))
        return ConvCalls(self.rows[at], tuple(self.shapes[i] for i in at.tolist()), self.time_ns[at], self.flops[at])


@once
def convolution_calls(timeline: Timeline) -> ConvCalls:
    """All forward convolutions, of one, two and three axes, transposed ones included."""
    trace = timeline.trace
    rows = ops_named(timeline, _NAMES)
    rows = rows[timeline.forward_op[rows] == NONE]
    transposed = is_named(trace, rows, lambda name: name in _TRANSPOSED)
    plain = of_each(trace, rows, _shape)
    turned = of_each(trace, rows, _transposed_shape)
    shapes = tuple(turned[i] if is_turned else plain[i] for i, is_turned in enumerate(transposed.tolist()))
    return ConvCalls(rows, shapes, work_ns(timeline, rows), flops_in(timeline, rows))


def work_ns(timeline: Timeline, hosts: IntArray) -> IntArray:
    """Time of the work of each host operator (not overlapping): its kernels', on the CPU its own."""
    if timeline.is_cpu_only:
        return timeline.trace.dur_ns[hosts]
    return np.array([timeline.trace.dur_ns[rows].sum() for rows in launched_by(timeline, hosts)], dtype=np.int64)


def work_rows(timeline: Timeline, hosts: IntArray) -> IntArray:
    """The rows whose time is the work of host operators (not overlapping): their kernels, on the CPU themselves."""
    if timeline.is_cpu_only or not len(hosts):
        return hosts
    return np.sort(np.concatenate(launched_by(timeline, hosts)))


def flops_in(timeline: Timeline, hosts: IntArray) -> FloatArray:
    """FLOPs of everything that each host operator (not overlapping) runs; NaN where nothing in it has a figure."""
    costed = np.flatnonzero(timeline.costs.flops > 0)
    owner = inside(timeline, costed, hosts)
    costed, owner = costed[owner != NONE], owner[owner != NONE]
    total = np.bincount(owner, weights=timeline.costs.flops[costed], minlength=len(hosts))
    return np.where(total > 0, total, np.nan)


def backward_rows(timeline: Timeline, calls: ConvCalls) -> list[IntArray]:
    """For each call the backward operators that it caused."""
    return backward_of(timeline, calls.rows, backward_ops(timeline))


def lies_channels_last(dims: Dims, strides: Dims) -> bool | None:
    """Whether a batch of images or volumes has its channels innermost in memory; None where it cannot be told."""
    if len(dims) not in (4, 5) or len(strides) != len(dims) or dims[1] <= 1 or max(dims[2:]) <= 1:
        return None
    return strides[1] == 1


def _shape(inputs: OpInputs) -> ConvShape:
    data, weight = inputs.shape(0), inputs.shape(1)
    is_short = inputs.value(6) not in ("True", "False")
    groups = whole_number(inputs.value(_GROUPS_AT[3 if is_short else 4]))
    is_transposed = inputs.value(6) == "True"
    if groups < 1:
        known = len(data) == len(weight) > 2 and weight[1] > 0 and not is_transposed
        groups = max(data[1] // weight[1], 1) if known else 1
    return ConvShape(
        data,
        weight,
        bool(inputs.shape(2)),
        numbers(inputs, 3),
        numbers(inputs, 4),
        numbers(inputs, 5),
        groups,
        inputs.dtype(0),
        inputs.stride(0),
        is_transposed,
    )


def _transposed_shape(inputs: OpInputs) -> ConvShape:
    return ConvShape(
        inputs.shape(0),
        inputs.shape(1),
        bool(inputs.shape(2)),
        numbers(inputs, 3),
        numbers(inputs, 4),
        numbers(inputs, 7),
        max(whole_number(inputs.value(6)), 1),
        inputs.dtype(0),
        inputs.stride(0),
        is_transposed=True,
    )
