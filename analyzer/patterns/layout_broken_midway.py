"""layout-broken-midway: inside a net that runs in channels_last, one operator turns its tensor back to NCHW.

Why it is slow: the turn itself is often a copy, the operators behind it run on NCHW, and the next convolution, whose
weight is in channels_last, copies its input to channels_last again.
Trace: recorded strides: a convolution on NCHW behind one on channels_last in the same step, and the last operator
between them whose input was still in channels_last.
Edit: a `contiguous()` goes, and with it the copy that the next convolution makes of its input (on a device the
library's transposes in it). Where a `view` or `reshape` lost the layout its copy stays in another form. In both cases
the pooling, upsampling and norms between run in channels_last on the CPU, by the factors of `timeline.layout`.
Gate: nets whose first convolution already runs on NCHW (`channels-last-missing`); operators that leave images for good
(flattened tokens of attention come back through a copy in any case); traces without strides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..findings import Evidence
from ..timeline.columns import distinct, is_among
from ..timeline.convolution_calls import ConvCalls, convolution_calls, lies_channels_last, work_rows
from ..timeline.edit import Edit, Scale, no_rows
from ..timeline.layout import nchw_scales
from ..timeline.model import KernelClass, Timeline
from ..timeline.op_inputs import of_each
from ..timeline.select import (
    count_per_step,
    events_of,
    in_typical_step,
    inside,
    is_noticeable,
    launched_by,
    outermost,
    outermost_forward,
    steady,
    us_per_step,
)
from ..trace.model import NONE, Category, Dims, IntArray, OpInputs
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site

_COPY = "aten::contiguous"
_COPIES = ("aten::contiguous", "aten::clone", "aten::copy_")
_MAX_BETWEEN = 12
"""Operators between the turn and the convolution; farther apart the tensor served other ends."""


@dataclass(frozen=True, slots=True)
class _Break:
    """One turn: the operator that lost the layout, the convolution that finds it lost, and what runs between."""

    breaker: int
    conv: int
    between: IntArray


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per operator that turns the layout back."""
    calls = convolution_calls(timeline)
    states = [shape.channels_last for shape in calls.shapes]
    if True not in states or False not in states:
        return
    breaks = list(_breaks(timeline, calls))
    if not breaks:
        return
    scales = nchw_scales(timeline) if timeline.is_cpu_only else ()
    copies = _copies_in(timeline, np.array([one.conv for one in breaks], dtype=np.int64))
    occurrences = [_occurrence(timeline, one, inner, scales) for one, inner in zip(breaks, copies, strict=True)]
    occurrences = [one for one in occurrences if len(one.cost_rows)]
    if not occurrences or not is_noticeable(timeline, distinct(np.concatenate([one.cost_rows for one in occurrences]))):
        return
    shapes = {one.breaker: timeline.trace.inputs_of(one.breaker).shape(0) for one in breaks}
    for group in by_site(timeline, occurrences):
        anchors = np.array([occurrence.anchor for occurrence in group])
        rows = distinct(np.concatenate([occurrence.cost_rows for occurrence in group]))
        name = timeline.trace.name_of(int(anchors[0])).removeprefix("aten::")
        yield Candidate(
            what=f"`{name}` turns a channels_last tensor back to NCHW in the middle of the net",
            remedy="keeping channels_last",
            occurrences=group,
            evidence=(
                Evidence(
                    "breaks",
                    "such turns per step",
                    count_per_step(timeline, anchors),
                    "",
                    events_of(timeline, in_typical_step(timeline, anchors)),
                ),
                Evidence("shape", "tensor", "x".join(map(str, shapes[int(anchors[0])])), "elements"),
                Evidence(
                    "time", "copies and operators on NCHW per step", round(us_per_step(timeline, rows) / 1000, 3), "ms"
                ),
            ),
            probability=0.8,
        )


def _breaks(timeline: Timeline, calls: ConvCalls) -> Iterator[_Break]:
    trace = timeline.trace
    top = outermost_forward(timeline)
    in_layout = np.array(of_each(trace, top, _takes_channels_last), dtype=np.bool_)
    last = np.maximum.accumulate(np.where(in_layout, np.arange(len(top)), NONE))
    place = {int(row): i for i, row in enumerate(top.tolist())}
    began: set[int] = set()
    """Steps in which a convolution ran in channels_last already."""
    taken: set[int] = set()
    for row, shape in zip(calls.rows.tolist(), calls.shapes, strict=True):
        step = int(timeline.steps.of[row])
        if shape.channels_last:
            began.add(step)
        if shape.channels_last is not False or step not in began or row not in place:
            continue
        at = place[row]
        breaker_at = int(last[at])
        if breaker_at == NONE or at - breaker_at > _MAX_BETWEEN or breaker_at in taken:
            continue
        breaker = int(top[breaker_at])
        if timeline.steps.of[breaker] == step and trace.thread[breaker] == trace.thread[row]:
            taken.add(breaker_at)
            yield _Break(breaker, row, top[breaker_at + 1 : at])


def _takes_channels_last(inputs: OpInputs) -> bool:
    """Whether the first tensor of a call lies in channels_last; of a list (`cat`), whether its first does."""
    dims, strides = inputs.shape(0), inputs.stride(0)
    if not dims and inputs.dims and inputs.strides and isinstance(_first(inputs.dims[0]), tuple):
        dims, strides = _first(inputs.dims[0]), _first(inputs.strides[0])
    return isinstance(dims, tuple) and isinstance(strides, tuple) and lies_channels_last(dims, strides) is True


def _first(values: Dims | tuple[Dims, ...]) -> Dims | int:
    return values[0] if values else ()


def _copies_in(timeline: Timeline, convs: IntArray) -> list[IntArray]:
    """For each convolution the copies of its input: operators, on a device also the library's transposes."""
    trace = timeline.trace
    rows = trace.rows_named(_COPIES)
    rows = outermost(timeline, steady(timeline, rows[trace.cat[rows] == Category.CPU_OP]))
    ordered = np.sort(convs)
    owner = inside(timeline, rows, ordered)
    launched = launched_by(timeline, ordered)
    turns = [kernels[timeline.kernel_class[kernels] == KernelClass.LAYOUT] for kernels in launched]
    of_conv = {
        int(conv): np.sort(np.concatenate([rows[owner == i], turns[i]])) for i, conv in enumerate(ordered.tolist())
    }
    return [of_conv[int(conv)] for conv in convs.tolist()]


def _occurrence(timeline: Timeline, one: _Break, inner: IntArray, scales: tuple[Scale, ...]) -> Occurrence:
    within = tuple(
        Scale(rows, scale.factor)
        for scale in scales
        if scale.factor < 1.0 and len(rows := scale.rows[is_among(scale.rows, one.between)])
    )
    name = timeline.trace.name_of(one.breaker)
    removed = np.sort(np.append(inner, one.breaker)) if name == _COPY else no_rows()
    touched = np.concatenate([removed, *(scale.rows for scale in within)])
    host = touched[timeline.trace.cat[touched] == Category.CPU_OP]
    device = touched[timeline.trace.cat[touched] != Category.CPU_OP]
    cost = np.concatenate([device, work_rows(timeline, outermost(timeline, host))])
    return Occurrence(one.breaker, Edit(scales=within, removed_ops=removed), distinct(cost))


PATTERN = Pattern(
    code="TAP502",
    slug="layout-broken-midway",
    title="Layout broken midway",
    fix=FixKind.UNSAFE,
    find=find,
    needs=("shapes",),
    group="inefficient_conv",
)
