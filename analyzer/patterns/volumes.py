"""Convolutions over volumes and videos, which have layouts of their own, and the transposes made around them."""

from __future__ import annotations

import numpy as np

from ..findings import Evidence
from ..timeline.convolution_calls import ConvCalls, backward_rows, convolution_calls
from ..timeline.edit import no_rows
from ..timeline.model import KernelClass, Timeline
from ..timeline.select import count_per_step, events_of, in_typical_step, launched_by
from ..trace.model import IntArray

_NAMES = ("aten::conv3d", "aten::conv_transpose3d")


def volume_convolutions(timeline: Timeline) -> ConvCalls:
    """The forward convolutions of three axes; none at once where the trace names none."""
    names = timeline.trace.names
    if not any(name in names for name in _NAMES):
        empty = np.empty(0, dtype=np.int64)
        return ConvCalls(empty, (), empty, np.empty(0))
    calls = convolution_calls(timeline)
    by_name = [names[i] in _NAMES for i in timeline.trace.name[calls.rows].tolist()]
    return calls.chosen([shape.axes == 3 or named for shape, named in zip(calls.shapes, by_name, strict=True)])


def library_transposes(timeline: Timeline, calls: ConvCalls) -> IntArray:
    """Transposes that the library makes within these convolutions, forward and backward."""
    hosts = np.sort(np.concatenate([no_rows(), *backward_rows(timeline, calls), calls.rows]))
    launched = np.concatenate([no_rows(), *launched_by(timeline, hosts)])
    return np.sort(launched[timeline.kernel_class[launched] == KernelClass.LAYOUT])


def transposes_evidence(timeline: Timeline, transposes: IntArray) -> Evidence:
    """How many transposes by the library a step holds."""
    return Evidence(
        "layout",
        "transposes made by the library per step",
        count_per_step(timeline, transposes),
        "",
        events_of(timeline, in_typical_step(timeline, transposes)),
    )
