"""Convolutions whose result goes straight into a batch norm."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from ..timeline.convolution_calls import ConvShape, convolution_calls
from ..timeline.model import Timeline
from ..timeline.op_inputs import of_each
from ..timeline.select import launched_by, outermost_forward
from ..trace.model import NONE, IntArray

_NORM = "aten::batch_norm"
_COUNTS = ("aten::add_", "aten::add")
"""In training a batch norm first counts its batches."""
_TRAINING_KERNEL = re.compile(r"bn_fw_tr|batch_norm_collect_statistics|BnFwdTrain|BatchNormFwdTrain")
_INFERENCE_KERNEL = re.compile(r"bn_fw_inf|batch_norm_transform_input|BnFwdInfer|BatchNormFwdInfer")
_TRAINING_AT = 5
_FLAGS = {"True": True, "False": False}


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
    top = outermost_forward(timeline)
    norm_name = trace.names.index(_NORM)
    places = np.flatnonzero(trace.name[top] == norm_name)
    norms = top[places]
    channels = of_each(trace, norms, lambda inputs: inputs.shape(0)[1] if len(inputs.shape(0)) > 1 else NONE)
    training = of_each(trace, norms, lambda inputs: inputs.value(_TRAINING_AT))
    found: list[ConvNorm] = []
    launched = launched_by(timeline, norms)
    for place, norm, width, flag, kernels in zip(
        places.tolist(), norms.tolist(), channels, training, launched, strict=True
    ):
        conv = _made_by(timeline, top, place)
        if (shape := shape_of.get(conv)) is None or not _fits(shape, width):
            continue
        found.append(ConvNorm(conv, norm, shape, _FLAGS.get(flag, _by_kernels(timeline, kernels))))
    return found


def _by_kernels(timeline: Timeline, kernels: IntArray) -> bool | None:
    """Whether a norm's kernels take statistics or only use them."""
    names = [timeline.trace.name_of(row) for row in kernels.tolist()]
    if any(_TRAINING_KERNEL.search(name) for name in names):
        return True
    return False if any(_INFERENCE_KERNEL.search(name) for name in names) else None


def _made_by(timeline: Timeline, top: IntArray, place: int) -> int:
    """The operator before the norm on its thread, the count of batches passed over."""
    trace = timeline.trace
    before = place - 1
    while before >= 0 and trace.name_of(int(top[before])) in _COUNTS:
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
