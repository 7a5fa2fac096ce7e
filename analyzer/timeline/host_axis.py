"""Host time as one axis: the replayed threads laid end to end, each in a lane of its own, the main thread first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..trace.model import HOST_CATEGORIES, NONE, Category, Int32Array, IntArray, Trace
from .columns import distinct
from .model import CallTree, Steps


@dataclass(frozen=True, slots=True)
class HostAxis:
    """Where each host row lies on the axis. A position is `lane * span_ns + (time - origin_ns)`."""

    origin_ns: int
    span_ns: int
    lanes: int
    lane: Int32Array
    """Shape (threads,): lane of each thread; NONE where nothing of it is replayed."""
    row_start: IntArray
    """Shape (n,): position where a host row begins, cut off at the window; NONE for rows outside and device rows."""
    row_end: IntArray

    def at(self, lane: IntArray | int, moment_ns: IntArray) -> IntArray:
        """Position of moments on a lane, moved into the window."""
        return np.asarray(lane, dtype=np.int64) * self.span_ns + np.clip(
            moment_ns - self.origin_ns, 0, self.span_ns - 1
        )

    def lane_at(self, position: IntArray) -> IntArray:
        """The lane that positions lie in."""
        return position // self.span_ns


def lay_out(trace: Trace, tree: CallTree, steps: Steps, start_ns: int, end_ns: int) -> HostAxis:
    """Lay out the threads that do something on the host between `start_ns` and `end_ns`."""
    rows = trace.rows(*HOST_CATEGORIES)
    rows = rows[(trace.end_ns[rows] > start_ns) & (trace.ts_ns[rows] < end_ns)]
    home = _home_threads(trace, tree, rows)
    thread = home[trace.thread[rows]]
    lane_of_home = np.full(len(trace.threads), NONE, dtype=np.int32)
    for lane, index in enumerate(_main_first(trace, steps, rows, thread)):
        lane_of_home[index] = lane
    lane = np.where(lane_of_home[home] >= 0, lane_of_home[home], NONE).astype(np.int32)
    axis = HostAxis(
        origin_ns=start_ns,
        span_ns=end_ns - start_ns + 1,
        lanes=int(lane.max(initial=-1)) + 1,
        lane=lane,
        row_start=np.full(len(trace), NONE, dtype=np.int64),
        row_end=np.full(len(trace), NONE, dtype=np.int64),
    )
    lanes = lane[trace.thread[rows]].astype(np.int64)
    axis.row_start[rows] = axis.at(lanes, trace.ts_ns[rows])
    axis.row_end[rows] = axis.at(lanes, trace.end_ns[rows])
    return axis


def _home_threads(trace: Trace, tree: CallTree, rows: IntArray) -> IntArray:
    """The thread that each thread's events really ran on.

    Some profilers write Python frames under a thread id of their own; the call tree nests the operators in them.
    """
    home = np.arange(len(trace.threads))
    nested = rows[tree.parent[rows] >= 0]
    outer, inner = trace.thread[tree.parent[nested]], trace.thread[nested]
    home[outer[outer != inner]] = inner[outer != inner]
    return home


def _main_first(trace: Trace, steps: Steps, rows: IntArray, thread: IntArray) -> list[int]:
    """The threads of `rows`, the main one first: the one that marks the steps, else the one that spans most."""
    found = distinct(thread).tolist()
    if not found:
        return []
    marks = np.flatnonzero(trace.cat[rows] == Category.USER_ANNOTATION)
    marks = marks[np.isin(trace.ts_ns[rows[marks]], steps.start_ns)]
    if len(marks):
        main = int(np.bincount(thread[marks]).argmax())
    else:
        main = max(found, key=lambda t: int(np.ptp(trace.ts_ns[rows[thread == t]])))
    return [main, *(t for t in found if t != main)]
