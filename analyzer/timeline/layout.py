"""What the channels_last memory format would change, operator by operator.

Factors on the CPU were measured with torch 2.13 (oneDNN, one thread, fp32, batches 4-16, allocator kept from
trimming), contiguous against channels_last, over some fifty shapes: time in channels_last over time in NCHW. Depthwise
convolutions 0.70-0.87 forward and 0.71-0.77 backward; other oneDNN convolutions 0.62-0.95 forward, 0.9-1.2 backward;
1x1 convolutions that PyTorch runs without oneDNN (one thread, batch under 16) about 1 forward and 0.75-1.06 backward;
grouped ones slower backward (1.34); max pooling 0.08-0.14; nearest and bilinear upsampling about 0.1; batch norm
0.51-0.60 forward; group norm slower (1.4).
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from ..trace.model import NONE, Dims, IntArray, OpInputs
from ..trace.scalars import whole_number
from .edit import Scale
from .memo import once
from .model import Timeline
from .op_inputs import of_each
from .select import backward_of, backward_ops, ops_named

_PLAIN_CONVOLUTIONS = ("aten::thnn_conv2d", "aten::_slow_conv2d_forward")
TRANSPOSED_CONVOLUTION = "aten::conv_transpose2d"
CONVOLUTIONS = ("aten::conv2d", TRANSPOSED_CONVOLUTION, "aten::convolution", "aten::_convolution")


class ConvKind(IntEnum):
    """Kinds of 2D convolution that layouts treat differently."""

    DENSE = 0
    WITHOUT_ONEDNN = 1
    """Dense, and run as a plain matrix product: PyTorch's own path for 1x1 on one thread."""
    DEPTHWISE = 2
    GROUPED = 3
    TRANSPOSED = 4
    TRANSPOSED_PATCH = 5
    """Stride equals the kernel: no overlap."""


_CONV_FORWARD = {
    ConvKind.DENSE: 0.82,
    ConvKind.WITHOUT_ONEDNN: 1.0,
    ConvKind.DEPTHWISE: 0.75,
    ConvKind.GROUPED: 1.0,
    ConvKind.TRANSPOSED: 0.8,
    ConvKind.TRANSPOSED_PATCH: 0.4,
}
_CONV_BACKWARD = {
    ConvKind.DENSE: 1.0,
    ConvKind.WITHOUT_ONEDNN: 0.9,
    ConvKind.DEPTHWISE: 0.75,
    ConvKind.GROUPED: 1.34,
    ConvKind.TRANSPOSED: 1.03,
    ConvKind.TRANSPOSED_PATCH: 1.25,
}
_OTHER_FORWARD = {
    "aten::max_pool2d": 0.12,
    "aten::upsample_nearest2d": 0.1,
    "aten::upsample_bilinear2d": 0.12,
    "aten::batch_norm": 0.57,
    "aten::group_norm": 1.4,
}
_OTHER_BACKWARD = {
    "aten::max_pool2d": 0.75,
    "aten::upsample_nearest2d": 0.5,
    "aten::upsample_bilinear2d": 0.25,
    "aten::group_norm": 1.34,
}


@once
def convolutions(timeline: Timeline) -> IntArray:
    """Forward 2D convolutions of the steady steps, outermost operators, those of recorded size known to be 2D only."""
    rows = ops_named(timeline, CONVOLUTIONS)
    rows = rows[timeline.forward_op[rows] == NONE]
    rank = np.array(of_each(timeline.trace, rows, lambda inputs: len(inputs.shape(0))), dtype=np.int64)
    return rows[(rank == 4) | (rank == 3) | (rank == 0)]


def is_channels_last(inputs: OpInputs, argument: int = 0) -> bool | None:
    """Whether a 4-D tensor argument lies in channels_last; None where the trace cannot tell.

    A tensor of one channel, or of one pixel, is both and counts as None.
    """
    dims, strides = inputs.shape(argument), inputs.stride(argument)
    if len(dims) != 4 or len(strides) != 4 or dims[1] == 1 or dims[2] * dims[3] == 1:
        return None
    return strides[1] == 1


def is_grouped(inputs: OpInputs) -> bool:
    """Whether a forward convolution, as far as its recorded sizes tell, has more than one group."""
    source, weight = inputs.shape(0), inputs.shape(1)
    return len(source) == 4 and len(weight) == 4 and source[1] != weight[1]


def conv_kind(timeline: Timeline, row: int) -> ConvKind:
    """The kind of a forward convolution, from its recorded sizes and the operators that it ran."""
    inputs = timeline.trace.inputs_of(row)
    weight = inputs.shape(1)
    if timeline.trace.name_of(row) == TRANSPOSED_CONVOLUTION:
        stride = _pair(inputs.value(3))
        return ConvKind.TRANSPOSED_PATCH if len(weight) == 4 and stride == weight[2:] else ConvKind.TRANSPOSED
    if is_grouped(inputs):
        return ConvKind.DEPTHWISE if weight[1] == 1 else ConvKind.GROUPED
    return ConvKind.WITHOUT_ONEDNN if _runs_without_onednn(timeline, row) else ConvKind.DENSE


def nchw_convolutions(timeline: Timeline) -> IntArray:
    """The forward convolutions that do not run in channels_last already, as far as recorded strides tell."""
    rows = convolutions(timeline)
    in_channels_last = of_each(timeline.trace, rows, is_channels_last)
    return rows[np.array([found is not True for found in in_channels_last], dtype=np.bool_)]


def nchw_scales(timeline: Timeline) -> tuple[Scale, ...]:
    """Scales that turn the convolutions, pooling, upsampling and norms of the steady steps, and their backward, into
    what they would take in channels_last on the CPU."""
    by_factor: dict[float, list[IntArray]] = {}
    convs = nchw_convolutions(timeline)
    backward = backward_ops(timeline)
    for row, caused in zip(convs.tolist(), backward_of(timeline, convs, backward), strict=True):
        kind = conv_kind(timeline, row)
        by_factor.setdefault(_CONV_FORWARD[kind], []).append(np.array([row]))
        by_factor.setdefault(_CONV_BACKWARD[kind], []).append(caused)
    for name, factor in _OTHER_FORWARD.items():
        rows = ops_named(timeline, (name,))
        rows = rows[np.array(of_each(timeline.trace, rows, _is_nchw_image), dtype=np.bool_)]
        by_factor.setdefault(factor, []).append(rows)
        if name in _OTHER_BACKWARD:
            by_factor.setdefault(_OTHER_BACKWARD[name], []).extend(backward_of(timeline, rows, backward))
    return _scales(by_factor)


def _scales(by_factor: dict[float, list[IntArray]]) -> tuple[Scale, ...]:
    joined = {factor: np.concatenate(parts) for factor, parts in by_factor.items() if parts and factor != 1.0}
    return tuple(Scale(np.sort(rows), factor) for factor, rows in joined.items() if len(rows))


def _is_nchw_image(inputs: OpInputs) -> bool:
    return len(inputs.shape(0)) == 4 and is_channels_last(inputs) is not True


def _runs_without_onednn(timeline: Timeline, row: int) -> bool:
    waiting = timeline.tree.children(row).tolist()
    while waiting:
        child = waiting.pop()
        if timeline.trace.name_of(child) in _PLAIN_CONVOLUTIONS:
            return True
        waiting.extend(timeline.tree.children(child).tolist())
    return False


def _pair(text: str) -> Dims:
    """Two numbers recorded as `"[2, 2]"` or `"[2]"`."""
    words = (whole_number(word.strip()) for word in text.strip("[]").split(","))
    numbers = tuple(number for number in words if number != NONE)
    return numbers * 2 if len(numbers) == 1 else numbers
