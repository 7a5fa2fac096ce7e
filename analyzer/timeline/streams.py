"""The device work that a replay covers, in stream order, and which of it was under way when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..trace.model import DEVICE_CATEGORIES, NONE, Int32Array, IntArray, Trace
from .columns import distinct, is_named
from .host_axis import HostAxis
from .model import EARLIER, Launches, Steps

_GRAPH_LAUNCH = "GraphLaunch"


@dataclass(frozen=True, slots=True)
class DeviceWork:
    """Device events of a replay in order of (stream, start). Arrays have shape (events,)."""

    row: IntArray
    stream: Int32Array
    """0, 1, 2, ... for each distinct (device, stream) of the trace."""
    stream_id: IntArray
    """Shape (streams,): the number that the trace gives each stream."""
    first: IntArray
    """Shape (streams + 1,): events of stream s are first[s] ... first[s + 1] - 1."""
    start_ns: IntArray
    end_ns: IntArray
    """Ascends along a stream: where events overlap (rounding, bad durations), one ends as the next begins."""
    call: IntArray
    """Row of the launching call, if that is replayed; else NONE."""
    called_ns: IntArray
    """When the launching call began, never before that of an earlier event of the stream."""
    step: Int32Array

    @property
    def streams(self) -> int:
        """How many streams there are."""
        return len(self.stream_id)

    def in_stream_order(self, moment_ns: IntArray) -> IntArray:
        """The least moments, none before the given one, that ascend along each stream."""
        return _running_maximum(moment_ns, self.stream.astype(np.int64))

    def last_before(self, stream: int, moment_ns: int) -> int:
        """The last event of a stream that was launched before a moment; NONE if none was."""
        low, high = self.first[stream], self.first[stream + 1]
        place = low + int(np.searchsorted(self.called_ns[low:high], moment_ns, side="left"))
        return place - 1 if place > low else NONE

    def last_done(self, stream: int, called_before_ns: IntArray, done_by_ns: IntArray) -> IntArray:
        """For each pair of moments the last event of a stream launched before one and done by the other, or NONE."""
        low, high = self.first[stream], self.first[stream + 1]
        called = np.searchsorted(self.called_ns[low:high], called_before_ns, side="left")
        done = np.searchsorted(self.end_ns[low:high], done_by_ns, side="right")
        last = np.minimum(called, done) - 1
        return np.where(last >= 0, low + last, NONE)


def collect(trace: Trace, launches: Launches, steps: Steps, axis: HostAxis, end_ns: int) -> DeviceWork:
    """Device events that run after the origin and were launched before `end_ns`."""
    rows = trace.rows(*DEVICE_CATEGORIES)
    runtime = launches.runtime[rows]
    call = np.where((runtime >= 0) & (axis.row_start[runtime] >= 0), runtime, NONE).astype(np.int64)
    call_ts = np.where(runtime >= 0, trace.ts_ns[runtime], trace.ts_ns[rows])
    keep = (trace.end_ns[rows] > axis.origin_ns) & (call_ts < end_ns)
    rows, call, call_ts = rows[keep], call[keep], call_ts[keep]
    ids = _streams_of_graphs(trace, call, trace.stream[rows])
    device = trace.device[rows]
    order = np.lexsort((trace.ts_ns[rows], ids, device))
    rows, call, call_ts, ids, device = rows[order], call[order], call_ts[order], ids[order], device[order]
    begins = np.append(True, (np.diff(ids) != 0) | (np.diff(device) != 0))[: len(rows)]
    stream = np.cumsum(begins) - 1
    first = np.append(np.flatnonzero(begins), len(rows))
    starts, ends = trace.ts_ns[rows], np.array(trace.end_ns[rows])
    followed = np.flatnonzero(np.diff(stream) == 0)
    ends[followed] = np.minimum(ends[followed], starts[followed + 1])
    step = np.where(call_ts >= axis.origin_ns, steps.of[rows], NONE)
    is_earlier = (_running_maximum((call >= 0).astype(np.int64), stream) == 0) & (step == NONE)
    return DeviceWork(
        row=rows,
        stream=stream.astype(np.int32),
        stream_id=ids[begins],
        first=first,
        start_ns=starts,
        end_ns=ends,
        call=call,
        called_ns=_running_maximum(np.where(call >= 0, call_ts, axis.origin_ns - 1), stream),
        step=np.where(is_earlier, EARLIER, step).astype(np.int32),
    )


def previous_in_stream(work: DeviceWork) -> IntArray:
    """End of the event before each one on its stream; -1 for a stream's first."""
    previous = np.empty(len(work.row), dtype=np.int64)
    previous[1:] = work.end_ns[:-1]
    previous[work.first[:-1]] = -1
    return previous


def _streams_of_graphs(trace: Trace, call: IntArray, stream: IntArray) -> IntArray:
    """Streams of device events, those of a launched graph moved to the stream it was launched into.

    The kernels of a graph carry the stream they were captured on; they run in order with what their thread launched
    before and after, so that is taken for their stream.
    """
    in_graph = (call >= 0) & is_named(trace, call, lambda name: _GRAPH_LAUNCH in name)
    if not in_graph.any():
        return stream
    moved = stream.copy()
    for thread in distinct(trace.thread[call[in_graph]]).tolist():
        of_thread = (call >= 0) & (trace.thread[call] == thread)
        graph, other = np.flatnonzero(of_thread & in_graph), np.flatnonzero(of_thread & ~in_graph)
        if len(other):
            other = other[np.argsort(trace.ts_ns[call[other]], kind="stable")]
            before = np.searchsorted(trace.ts_ns[call[other]], trace.ts_ns[call[graph]]) - 1
            moved[graph] = stream[other[np.maximum(before, 0)]]
    return moved


def _running_maximum(values: IntArray, group: IntArray) -> IntArray:
    """Running maximum within each group; `group` ascends."""
    if not len(values):
        return values
    width = int(values.max() - values.min()) + 1
    return np.maximum.accumulate(values - values.min() + group * width) - group * width + values.min()
