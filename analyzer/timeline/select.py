"""Row selections that rules share. Everything is an array of event rows in time order, unless said otherwise."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import pairwise

import numpy as np

from ..trace.model import NONE, BoolArray, Category, Int32Array, IntArray
from .columns import distinct, is_named, median
from .edit import no_rows
from .memo import once
from .model import Phase, Timeline

NOTICEABLE_SHARE = 0.005
"""Work below this share of the step is no matter, whatever it could gain. Rules that know better have their own."""


def steady(timeline: Timeline, rows: IntArray) -> IntArray:
    """Those of `rows` that belong to a steady step."""
    return rows[timeline.steps.are_steady(rows)]


def typical_step(timeline: Timeline) -> int:
    """The steady step whose length is nearest the median: the one that evidence names. NONE without steps."""
    steps = timeline.steps.steady
    if not len(steps):
        return NONE
    durations = timeline.steps.duration_ns[steps]
    return int(steps[np.argmin(np.abs(durations - median(durations)))])


def in_typical_step(timeline: Timeline, rows: IntArray) -> IntArray:
    """Those of `rows` that belong to the typical step."""
    return rows[timeline.steps.of[rows] == typical_step(timeline)] if len(rows) else rows


def events_of(timeline: Timeline, rows: IntArray) -> tuple[int, ...]:
    """Positions of `rows` in the file's `traceEvents`: what a piece of evidence cites."""
    return tuple(timeline.trace.file_index[rows].tolist())


def us_per_step(timeline: Timeline, rows: IntArray) -> float:
    """Summed duration of `rows` per steady step, in µs: the median over the steps."""
    return _median_per_step(timeline, rows, timeline.trace.dur_ns[rows] / 1000.0)


def is_noticeable(timeline: Timeline, rows: IntArray, share: float = NOTICEABLE_SHARE) -> bool:
    """Whether `rows` (kernels; on the CPU operators that do not overlap) take at least that share of a steady step."""
    return len(rows) > 0 and us_per_step(timeline, rows) >= share * timeline.step_us


def count_per_step(timeline: Timeline, rows: IntArray) -> float:
    """How many of `rows` a steady step has: the median over the steps."""
    return _median_per_step(timeline, rows, np.ones(len(rows)))


def value_per_step(timeline: Timeline, rows: IntArray, values: np.ndarray) -> float:
    """Sum of `values`, one per row, per steady step: the median over the steps. NaN counts as 0."""
    return _median_per_step(timeline, rows, np.nan_to_num(values))


def ops_named(timeline: Timeline, names: Collection[str]) -> IntArray:
    """Operators of the steady steps whose name is one of `names`, outermost only (`aten::to` in `aten::to` is one)."""
    trace = timeline.trace
    rows = trace.rows_named(tuple(names))
    rows = steady(timeline, rows[trace.cat[rows] == Category.CPU_OP])
    return outermost(timeline, rows)


def outside_backward(timeline: Timeline, names: Collection[str]) -> IntArray:
    """Operators of the steady steps whose name is one of `names`, outermost only and none of the backward pass, in
    order of thread and time."""
    trace = timeline.trace
    rows = trace.rows_named(tuple(names))
    rows = rows[(trace.cat[rows] == Category.CPU_OP) & (timeline.phase[rows] != Phase.BACKWARD)]
    rows = outermost(timeline, steady(timeline, rows))
    return rows[np.lexsort((trace.ts_ns[rows], trace.thread[rows]))]


def outermost(timeline: Timeline, rows: IntArray) -> IntArray:
    """Those of `rows` that lie in no other of them on the same thread."""
    trace = timeline.trace
    order = rows[np.lexsort((-trace.dur_ns[rows], trace.ts_ns[rows], trace.thread[rows]))]
    ends, threads = trace.ts_ns[order] + trace.dur_ns[order], trace.thread[order]
    if not len(order):
        return order
    offset = threads.astype(np.int64) * (int(ends.max()) - int(trace.ts_ns[order].min()) + 1)
    reached = np.maximum.accumulate(ends + offset)
    inside = np.zeros(len(order), dtype=np.bool_)
    inside[1:] = (ends[1:] <= (reached - offset)[:-1]) & (threads[1:] == threads[:-1])
    return np.sort(order[~inside])


def outermost_forward(timeline: Timeline) -> IntArray:
    """Operators that Python called, of the forward passes, thread by thread."""
    trace, tree = timeline.trace, timeline.tree
    rows = steady(timeline, trace.rows(Category.CPU_OP))
    parent = tree.parent[rows]
    is_top = (parent == NONE) | (tree.op[np.maximum(parent, 0)] == NONE)
    top = rows[is_top & (timeline.forward_op[rows] == NONE)]
    return top[np.lexsort((trace.ts_ns[top], trace.thread[top]))]


def inside(timeline: Timeline, rows: IntArray | Int32Array, hosts: IntArray) -> IntArray:
    """For each of `rows` (host events), the index in `hosts` of the one that encloses it in time on its thread; NONE.

    `hosts` must not overlap one another on a thread (see `outermost`).
    """
    trace = timeline.trace
    found = np.full(len(rows), NONE, dtype=np.int64)
    if not len(hosts) or not len(rows):
        return found
    start, end = trace.ts_ns[hosts], trace.ts_ns[hosts] + trace.dur_ns[hosts]
    moment, base = trace.ts_ns[rows], int(start.min())
    width = int(end.max()) - base + 1
    keys = trace.thread[hosts].astype(np.int64) * width + start - base
    order = np.argsort(keys, kind="stable")
    # What lies before or after all hosts may look like another thread's moment; it has no host there or here.
    wanted = trace.thread[rows].astype(np.int64) * width + moment - base
    at = np.searchsorted(keys[order], wanted, side="right") - 1
    candidate = order[np.maximum(at, 0)]
    holds = (at >= 0) & (trace.thread[hosts][candidate] == trace.thread[rows]) & (moment < end[candidate])
    found[holds] = candidate[holds]
    return found


def host_rows(timeline: Timeline, phase: Phase) -> IntArray:
    """Operators, annotations and frames of one phase."""
    rows = timeline.trace.rows(Category.CPU_OP, Category.USER_ANNOTATION, Category.PYTHON_FUNCTION)
    return rows[timeline.phase[rows] == phase]


def runtime_calls(timeline: Timeline, wanted: re.Pattern[str]) -> IntArray:
    """Calls of the device's runtime or driver in the steady steps, by their names."""
    rows = steady(timeline, timeline.trace.rows(Category.RUNTIME))
    return rows[is_named(timeline.trace, rows, wanted.search)]


def are_in_most_steps(timeline: Timeline, rows: IntArray) -> bool:
    """Whether at least half of the steady steps hold one of `rows`."""
    return 2 * len(distinct(timeline.steps.of[steady(timeline, rows)])) >= len(timeline.steps.steady)


def device_rows(timeline: Timeline) -> IntArray:
    """All kernels, copies and fills of the steady steps."""
    return timeline.device_rows


def from_graph(timeline: Timeline, device: IntArray) -> BoolArray:
    """For each device row, whether a graph launch (one call for many kernels) put it on the device."""
    runtime = timeline.launches.runtime[device]
    return (runtime != NONE) & is_named(timeline.trace, runtime, lambda name: "GraphLaunch" in name)


def outer_op(timeline: Timeline, row: int) -> int:
    """The outermost operator of the unbroken chain of operators around host event `row`: what Python called."""
    trace, tree = timeline.trace, timeline.tree
    current = int(tree.op[row])
    if current == NONE:
        return row
    while (parent := int(tree.parent[current])) != NONE and trace.cat[parent] == Category.CPU_OP:
        current = parent
    return current


def launched_by(timeline: Timeline, hosts: IntArray) -> list[IntArray]:
    """For each of `hosts` (not overlapping), the device work launched from inside it."""
    device = device_rows(timeline)
    runtime = timeline.launches.runtime[device]
    device, runtime = device[runtime != NONE], runtime[runtime != NONE]
    return _split(device, inside(timeline, runtime, hosts), len(hosts))


@once
def backward_ops(timeline: Timeline) -> IntArray:
    """The outermost operators of the backward passes of the steady steps."""
    rows = np.flatnonzero((timeline.forward_op != NONE) & (timeline.trace.cat == Category.CPU_OP))
    return outermost(timeline, steady(timeline, rows))


def backward_of(timeline: Timeline, hosts: IntArray, backward: IntArray | None = None) -> list[IntArray]:
    """For each forward host event of `hosts` (not overlapping), the outermost backward operators it caused.

    Whoever asks often gives `backward`, the `backward_ops`, along.
    """
    backward = backward_ops(timeline) if backward is None else backward
    return _split(backward, inside(timeline, timeline.forward_op[backward], hosts), len(hosts))


def _split(rows: IntArray, owner: IntArray, owners: int) -> list[IntArray]:
    """`rows` by owner 0 .. owners-1; rows with owner NONE are left out."""
    if not len(rows):
        return [no_rows()] * owners
    rows, owner = rows[owner != NONE], owner[owner != NONE]
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(owners + 1))
    return [rows[order[start:end]] for start, end in pairwise(bounds.tolist())]


def _median_per_step(timeline: Timeline, rows: IntArray, weights: np.ndarray) -> float:
    steps = timeline.steps.steady
    if not len(steps):
        return 0.0
    of = timeline.steps.of[rows]
    known = of != NONE
    sums = np.bincount(of[known], weights=weights[known], minlength=len(timeline.steps))
    return median(sums[steps])
