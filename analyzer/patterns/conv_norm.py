"""Convolutions whose result goes straight into a batch norm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..timeline.convolution_calls import ConvShape, convolution_calls
from ..timeline.model import Timeline
from ..timeline.op_inputs import of_each
from ..timeline.select import steady
from ..trace.model import NONE, Category, IntArray

_NORM = "aten::batch_norm"
_COUNTS = "aten::add_"
"""In training a batch norm first counts its batches."""
_TRAINING_AT = 5


@dataclass(frozen=True, slots=True)
class ConvNorm:
    """One convolution and the batch norm right after it, as their outermost operators."""

    conv: int
    norm: int
    shape: ConvShape
    """Of the convolution."""
    is_training: bool | None
    """Whether the norm used the batch's own statistics; None where the trace does not tell."""


def conv_norms(timeline: Timeline) -> list[ConvNorm]:
    """All such pairs of the steady steps' forward passes, in time order."""
    trace = timeline.trace
    if _NORM not in trace.names:
        return []
    calls = convolution_calls(timeline)
    shape_of = dict(zip(calls.rows.tolist(), calls.shapes, strict=True))
    top = _outermost_forward(timeline)
    norm_name = trace.names.index(_NORM)
    places = np.flatnonzero(trace.name[top] == norm_name)
    norms = top[places]
    channels = of_each(trace, norms, lambda inputs: inputs.shape(0)[1] if len(inputs.shape(0)) > 1 else NONE)
    training = of_each(trace, norms, lambda inputs: inputs.value(_TRAINING_AT))
    found: list[ConvNorm] = []
    for place, norm, width, flag in zip(places.tolist(), norms.tolist(), channels, training, strict=True):
        conv = _made_by(timeline, top, place)
        if (shape := shape_of.get(conv)) is None or not _fits(shape, width):
            continue
        found.append(ConvNorm(conv, norm, shape, {"True": True, "False": False}.get(flag)))
    return found


def _outermost_forward(timeline: Timeline) -> IntArray:
    """Operators that Python called, of the forward passes, thread by thread."""
    trace, tree = timeline.trace, timeline.tree
    rows = steady(timeline, trace.rows(Category.CPU_OP))
    parent = tree.parent[rows]
    is_top = (parent == NONE) | (tree.op[np.maximum(parent, 0)] == NONE)
    top = rows[is_top & (timeline.forward_op[rows] == NONE)]
    return top[np.lexsort((trace.ts_ns[top], trace.thread[top]))]


def _made_by(timeline: Timeline, top: IntArray, place: int) -> int:
    """The operator before the norm on its thread, the count of batches passed over."""
    trace = timeline.trace
    before = place - 1
    while before >= 0 and trace.name_of(int(top[before])) == _COUNTS:
        if trace.inputs_of(int(top[before])).shape(0):
            return NONE
        before -= 1
    if before < 0 or trace.thread[top[before]] != trace.thread[top[place]]:
        return NONE
    return int(top[before])


def _fits(shape: ConvShape, channels: int) -> bool:
    """Whether a norm over `channels` can be over what the convolution gives; true where sizes were not recorded."""
    if channels == NONE or not shape.weight:
        return True
    given = shape.weight[1] * shape.groups if shape.is_transposed else shape.weight[0]
    return given == channels
