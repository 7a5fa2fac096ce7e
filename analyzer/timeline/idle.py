"""When the device had nothing to do, and why."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from ..trace.model import DEVICE_CATEGORIES, NONE, BoolArray, Category, Int8Array, Int32Array, IntArray, Trace
from .columns import is_named
from .intervals import Spans, check_sum, complement, covered_ns, cut, intersection, union
from .model import CallTree, Idle, IdleCause, KernelClass, Launches, Phase, Steps
from .steps import step_at

_SYNC_CALL = re.compile(r"^(cuda|hip|cu)\w*Synchronize|^(cuda|hip)Memcpy(WithStream|2D)?$")
_COLLECTIVE = re.compile(r"^(gloo|mpi|nccl|ucc|c10d):|^c10d::|^work::wait")
_SHORT_GAP_NS = 20_000
"""Without a launch record, a gap up to this long counts as the device's own."""


def find_idle(
    trace: Trace, steps: Steps, tree: CallTree, launches: Launches, phase: Int8Array, kernel_class: Int8Array
) -> Idle:
    """Every gap between the first and the last device event; of a trace without device work, see `_host_idle`.

    A gap that ends with work queued before it began is the device's own. Else the host came late: because it loaded
    data or waited for another rank (most of the gap), or because it had waited for the device; that explains as much
    of the gap as the wait was long, since without it the host would have come so much earlier. What remains is
    host-bound.
    """
    device_rows = trace.rows(*DEVICE_CATEGORIES)
    if not len(device_rows):
        return _host_idle(trace, steps, tree, phase)
    busy = union(trace.ts_ns[device_rows], trace.end_ns[device_rows])
    first, last = int(trace.ts_ns[device_rows].min()), int(trace.end_ns[device_rows].max())
    gaps = complement(busy, first, last)
    check_sum(busy, gaps, first, last)

    before = device_rows[np.searchsorted(trace.ts_ns[device_rows], gaps.end_ns)]
    launch = launches.runtime[before]
    is_known = launch >= 0
    launched_ns = np.where(is_known, trace.ts_ns[launch], gaps.end_ns)
    length = gaps.end_ns - gaps.start_ns
    was_queued = np.where(is_known, trace.end_ns[launch] <= gaps.start_ns, length <= _SHORT_GAP_NS)
    is_collective = kernel_class[before] == KernelClass.COMMUNICATION
    waiting_ns = np.minimum(launched_ns, gaps.end_ns)

    cause = np.full(len(gaps), IdleCause.HOST_BOUND, dtype=np.int8)
    host = launch.copy()
    wait = _waits(trace, launches).at(gaps.start_ns)
    for row_of_gap, reason in (
        (wait.row, IdleCause.SYNC),
        (_covering(trace, _collective_rows(trace), gaps.start_ns, waiting_ns), IdleCause.COMMUNICATION),
        (_covering(trace, _outermost(tree, phase == Phase.DATA), gaps.start_ns, waiting_ns), IdleCause.DATA),
    ):
        found = (row_of_gap >= 0) & ~was_queued
        cause[found] = reason
        host[found] = row_of_gap[found]
    cause[was_queued] = np.where(is_collective, IdleCause.COMMUNICATION, IdleCause.KERNEL_GAP)[was_queued]
    explained_ns = np.where(cause == IdleCause.SYNC, wait.waited_ns, length)
    return _split(gaps, explained_ns, cause, steps.of[before], before.astype(np.int32), host, launch)


def _split(
    gaps: Spans,
    explained_ns: IntArray,
    cause: Int8Array,
    step: Int32Array,
    before: Int32Array,
    host: Int32Array,
    launch: Int32Array,
) -> Idle:
    """Cut each gap after the time that its cause explains; the rest is host-bound."""
    cut_ns = np.minimum(gaps.start_ns + explained_ns, gaps.end_ns)
    has_rest = cut_ns < gaps.end_ns
    start = np.concatenate([gaps.start_ns, cut_ns[has_rest]])
    order = np.argsort(start, kind="stable")
    late = np.full(int(has_rest.sum()), IdleCause.HOST_BOUND, dtype=np.int8)
    return Idle(
        start_ns=start[order],
        end_ns=np.concatenate([cut_ns, gaps.end_ns[has_rest]])[order],
        cause=np.concatenate([cause, late])[order],
        step=np.concatenate([step, step[has_rest]])[order],
        before=np.concatenate([before, before[has_rest]])[order],
        host=np.concatenate([host, launch[has_rest]])[order],
    )


@dataclass(frozen=True, slots=True)
class _WaitsAt:
    """For each moment the call that held the host then (NONE if none), and for how long it had."""

    row: Int32Array
    waited_ns: IntArray


@dataclass(frozen=True, slots=True)
class _Waits:
    """Calls that hold the host until the device is done, in order of start."""

    row: Int32Array
    start_ns: IntArray
    end_ns: IntArray

    def at(self, moment_ns: IntArray) -> _WaitsAt:
        """The last wait that began before each moment, if it was not over by then."""
        if not len(self.row):
            return _WaitsAt(np.full(len(moment_ns), NONE, dtype=np.int32), np.zeros(len(moment_ns), dtype=np.int64))
        place = np.searchsorted(self.start_ns, moment_ns) - 1
        holds = (place >= 0) & (self.end_ns[place] >= moment_ns)
        return _WaitsAt(
            np.where(holds, self.row[place], NONE).astype(np.int32),
            np.where(holds, moment_ns - self.start_ns[place], 0),
        )


def _waits(trace: Trace, launches: Launches) -> _Waits:
    """Synchronisations, and launching calls (copies from or to pageable memory) that return after their own work."""
    runtime_rows = trace.rows(Category.RUNTIME)
    holds = np.zeros(len(trace), dtype=bool)
    holds[runtime_rows[is_named(trace, runtime_rows, _SYNC_CALL.search)]] = True
    copies = trace.rows(Category.MEMCPY)
    copies = copies[launches.runtime[copies] >= 0]
    calls = launches.runtime[copies]
    holds[calls[trace.end_ns[calls] >= trace.end_ns[copies]]] = True
    rows = np.flatnonzero(holds).astype(np.int32)
    return _Waits(rows, trace.ts_ns[rows], trace.end_ns[rows])


def _covering(trace: Trace, rows: IntArray, start_ns: IntArray, end_ns: IntArray) -> Int32Array:
    """For each interval the one of `rows` that lies in it first, if together they cover most of it; else NONE."""
    none = np.full(len(start_ns), NONE, dtype=np.int32)
    if not len(rows):
        return none
    covered = covered_ns(union(trace.ts_ns[rows], trace.end_ns[rows]), start_ns, end_ns)
    # The first to end after the interval's start: rows are outermost, so ends come in order on each thread.
    by_end = rows[np.argsort(trace.end_ns[rows], kind="stable")]
    place = np.searchsorted(trace.end_ns[by_end], start_ns, side="right")
    first = by_end[np.minimum(place, len(by_end) - 1)]
    return np.where((end_ns > start_ns) & (2 * covered > end_ns - start_ns), first, none).astype(np.int32)


def _outermost(tree: CallTree, wanted: BoolArray) -> IntArray:
    """Wanted host rows that do not lie under another one."""
    above = np.append(wanted, False)[tree.parent]
    return np.flatnonzero(wanted & ~above & (np.diff(tree.child_start) >= 0))


def _collective_rows(trace: Trace) -> IntArray:
    """Host ranges of communication calls."""
    rows = trace.rows(Category.CPU_OP, Category.USER_ANNOTATION)
    return rows[is_named(trace, rows, _COLLECTIVE.search)]


def _host_idle(trace: Trace, steps: Steps, tree: CallTree, phase: Int8Array) -> Idle:
    """Time in steps that no operator covers: what Python (or NumPy under it) does itself.

    `before` is the operator that ends it, `host` the loader's range, the collective, or the innermost Python frame
    that ran in the middle of it.
    """
    op_rows = trace.rows(Category.CPU_OP)
    busy = union(trace.ts_ns[op_rows], trace.end_ns[op_rows])
    data_rows, collective_rows = _outermost(tree, phase == Phase.DATA), _collective_rows(trace)
    # Cut where a step or a reason begins or ends, so that each gap has one of both.
    reasons = np.append(data_rows, collective_rows)
    bounds = np.concatenate([steps.start_ns, steps.end_ns, trace.ts_ns[reasons], trace.end_ns[reasons]])
    gaps = cut(_free_in_steps(steps, busy), bounds)
    step = step_at(gaps.start_ns, steps.start_ns, steps.end_ns)
    place = np.searchsorted(trace.ts_ns[op_rows], gaps.end_ns)
    before = np.append(op_rows, NONE)[place]
    before = np.where((before >= 0) & (trace.ts_ns[before] == gaps.end_ns), before, NONE) if len(op_rows) else before
    cause = np.full(len(gaps), IdleCause.HOST_BOUND, dtype=np.int8)
    host = _frame_at(trace, tree, (gaps.start_ns + gaps.end_ns) // 2)
    for rows, reason in (
        (collective_rows, IdleCause.COMMUNICATION),
        (data_rows, IdleCause.DATA),
    ):
        row_of_gap = _covering(trace, rows, gaps.start_ns, gaps.end_ns)
        cause[row_of_gap >= 0] = reason
        host[row_of_gap >= 0] = row_of_gap[row_of_gap >= 0]
    return Idle(gaps.start_ns, gaps.end_ns, cause, step, before.astype(np.int32), host)


def _free_in_steps(steps: Steps, busy: Spans) -> Spans:
    """The time in steps that `busy` leaves free."""
    inside = union(steps.start_ns, steps.end_ns)
    if not len(inside):
        return inside
    free = intersection(complement(busy, int(inside.start_ns[0]), int(inside.end_ns[-1])), inside)
    check_sum(intersection(busy, inside), free, 0, inside.total_ns)
    return free


def _frame_at(trace: Trace, tree: CallTree, moment_ns: IntArray) -> Int32Array:
    """The innermost Python frame running at each moment on the thread that has most frames; NONE without frames."""
    frames = trace.rows(Category.PYTHON_FUNCTION)
    found = np.full(len(moment_ns), NONE, dtype=np.int32)
    if not len(frames):
        return found
    frames = frames[trace.thread[frames] == np.bincount(trace.thread[frames]).argmax()]
    frame_above = np.append(tree.python, NONE)[tree.parent]
    place = np.searchsorted(trace.ts_ns[frames], moment_ns, side="right") - 1
    found = np.where(place >= 0, frames[place], NONE)
    over = (found >= 0) & (trace.end_ns[found] <= moment_ns)
    while over.any():
        found[over] = frame_above[found[over]]
        over = (found >= 0) & (trace.end_ns[found] <= moment_ns)
    return found.astype(np.int32)
