"""autograd-in-eval: a forward pass records a graph for a backward pass that never comes.

Why it is slow: with gradients on, each operator makes a node and keeps its inputs, so no buffer is used twice, memory
grows with depth, and the host does more per operator.
Trace: operators took sequence numbers (each stands for a node of the graph) that no backward operator has; a module
call whose nodes are all of that kind is named, else an unbroken run of such operators.
Edit: the pass under `no_grad`. On a device the host part keeps 0.8, on the CPU all of it 0.87: measured with torch 2.13
on one thread, convolution nets, MLPs and an encoder keep 0.5-1.0, most of them 0.8-0.95 (the less, the more of the
time went into memory that was fresh each time).
Gate: under eight such nodes in a call; calls of which only a part is never used, which may be meant.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.columns import distinct, is_among
from ..timeline.edit import Edit, Scale
from ..timeline.model import Phase, Timeline
from ..timeline.select import (
    count_per_step,
    events_of,
    in_typical_step,
    launched_by,
    outermost,
    steady,
    us_per_step,
)
from ..trace.model import BoolArray, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site
from .runs import python_operators

_MODULE = "nn.Module: "
_LEAST_NODES = 8
_NOTICEABLE_SHARE = 0.005
"""Passes that together take less of a step than this are not worth a word."""
_CPU_FACTOR = 0.87
_DEVICE_HOST_FACTOR = 0.8


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per place that runs a forward pass with a graph in vain."""
    creators = _creators(timeline)
    if len(creators) < _LEAST_NODES:
        return
    is_orphan = ~is_among(timeline.trace.sequence[creators], _differentiated(timeline))
    if is_orphan.sum() < _LEAST_NODES:
        return
    passes = _module_passes(timeline, creators, is_orphan)
    if not passes:
        passes = _operator_passes(timeline, creators, is_orphan)
    if sum(timeline.trace.dur_ns[rows].sum() for rows in passes) < _NOTICEABLE_SHARE * _steady_ns(timeline):
        return
    for group in by_site(timeline, (_occurrence(timeline, rows) for rows in passes)):
        yield _candidate(timeline, group, creators[is_orphan])


def _creators(timeline: Timeline) -> IntArray:
    """The operators that made nodes, in order: the last of each sequence number on the thread that made most.

    Operators look at the counter before they run; the counter moved on, so each number but the last was taken.
    """
    trace = timeline.trace
    rows = trace.rows(Category.CPU_OP)
    rows = steady(timeline, rows[(trace.sequence[rows] >= 0) & (timeline.phase[rows] != Phase.BACKWARD)])
    if not len(rows):
        return rows
    rows = rows[trace.thread[rows] == np.bincount(trace.thread[rows]).argmax()]
    numbers = trace.sequence[rows]
    moved_on = np.append(numbers[1:] > numbers[:-1], False)
    return rows[moved_on]


def _differentiated(timeline: Timeline) -> IntArray:
    """The sequence numbers of all backward operators of the recording."""
    trace = timeline.trace
    rows = trace.rows(Category.CPU_OP)
    numbers = trace.sequence[rows[timeline.phase[rows] == Phase.BACKWARD]]
    return distinct(numbers[numbers >= 0])


def _module_passes(timeline: Timeline, creators: IntArray, is_orphan: BoolArray) -> list[IntArray]:
    """The outermost module calls that made nodes, none of which was differentiated."""
    trace = timeline.trace
    names = [i for i, name in enumerate(trace.names) if name.startswith(_MODULE)]
    modules = steady(timeline, np.flatnonzero(is_among(trace.name, names)) if names else creators[:0])
    modules = modules[trace.thread[modules] == trace.thread[creators[0]]]
    moments = trace.ts_ns[creators]
    counted = np.append(0, np.cumsum(is_orphan))
    first = np.searchsorted(moments, trace.ts_ns[modules])
    behind = np.searchsorted(moments, trace.end_ns[modules])
    orphans = counted[behind] - counted[first]
    pure = modules[(orphans >= _LEAST_NODES) & (orphans == behind - first)]
    return [np.array([row]) for row in outermost(timeline, pure).tolist()]


def _operator_passes(timeline: Timeline, creators: IntArray, is_orphan: BoolArray) -> list[IntArray]:
    """Where no module calls were recorded: Python's operators of each unbroken run of such nodes in a step."""
    trace, of = timeline.trace, timeline.steps.of
    operators = python_operators(timeline)
    operators = operators[trace.thread[operators] == trace.thread[creators[0]]]
    breaks = np.flatnonzero((np.diff(is_orphan.astype(np.int8)) != 0) | (np.diff(of[creators]) != 0)) + 1
    found: list[IntArray] = []
    for run, orphan in zip(np.split(creators, breaks), np.split(is_orphan, breaks), strict=True):
        if orphan[0] and len(run) >= _LEAST_NODES:
            # A node may be made by an operator inside another one that Python called.
            start, end = np.searchsorted(trace.end_ns[operators], trace.ts_ns[run[[0, -1]]], side="right")
            found.append(operators[start : end + 1])
    return found


def _occurrence(timeline: Timeline, rows: IntArray) -> Occurrence:
    factor = _CPU_FACTOR if timeline.is_cpu_only else _DEVICE_HOST_FACTOR
    kernels = np.concatenate(launched_by(timeline, rows))
    trace = timeline.trace
    dearer = kernels if trace.dur_ns[kernels].sum() > trace.dur_ns[rows].sum() else rows
    return Occurrence(anchor=int(rows[0]), edit=Edit(scales=(Scale(rows, factor),)), cost_rows=dearer)


def _candidate(timeline: Timeline, group: tuple[Occurrence, ...], orphans: IntArray) -> Candidate:
    rows = np.sort(np.concatenate([scale.rows for one in group for scale in one.edit.scales]))
    events = events_of(timeline, in_typical_step(timeline, orphans))
    return Candidate(
        what="a forward pass records a graph that no backward pass uses",
        remedy="the same under no_grad",
        occurrences=group,
        evidence=(
            Evidence(
                "nodes", "graph nodes per step that were never used", count_per_step(timeline, orphans), "", events
            ),
            Evidence("pass", "host time of these passes per step", round(us_per_step(timeline, rows) / 1000, 3), "ms"),
        ),
        probability=0.9,
    )


def _steady_ns(timeline: Timeline) -> int:
    return int(timeline.steps.duration_ns[timeline.steps.steady].sum())


PATTERN = Pattern(
    code="TAP803",
    slug="autograd-in-eval",
    title="Graph recorded that nothing uses",
    fix=FixKind.SAFE,
    find=find,
    group="training loop and memory",
)
