"""Where the host waited for the device, and where one stream waited for another.

Synchronising calls are known by name, and what they wait for by `cuda_sync` records where the trace has them; else it
is inferred: a stream's synchronisation is taken to mean the stream that the same thread used last. Every inference must
agree with the recording: nothing that ended after a wait is taken for its cause.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ..trace.model import NONE, Category, IntArray, Trace
from .columns import distinct, is_named, quartiles
from .host_axis import HostAxis
from .streams import DeviceWork

_STREAM_SYNC = re.compile(r"StreamSynchronize")
_DEVICE_SYNC = re.compile(r"(Device|Ctx|Context|Thread)Synchronize|^(cuda|hip)(Free|FreeHost|HostFree)$|^cuMemFree")
_EVENT_SYNC = re.compile(r"EventSynchronize")
_STREAM_WAIT = re.compile(r"StreamWaitEvent")
_LAUNCH = re.compile(r"Launch|[mM]emcpy|[mM]emset")

_CLOCK_TOLERANCE_NS = 2_000
"""Host and device clocks are aligned no better than this."""
_HELD_RATIO = 4
"""A launching call that takes this many times what quick ones take, while the queue is deep, was held up by it."""
_DEEP_QUEUE = 200
_LONG_GAP_NS = 10_000
"""Gaps on a stream from which a wait for another stream is looked for."""
_PROMPT_NS = 30_000
"""A stream goes on within this time after what it waited for."""
_TELLING_WAIT_NS = 20_000
"""A wait for an unknown event is placed only if it was long enough to recognise what ended it."""


@dataclass(frozen=True, slots=True)
class HostWait:
    """A call that holds the host until device events are done. `until_ns` is when the recorded wait was over."""

    row: int
    events: tuple[int, ...]
    until_ns: int


def host_waits(trace: Trace, axis: HostAxis, work: DeviceWork) -> list[HostWait]:
    """All waits of the replayed threads for the device, in order of the calls."""
    rows = trace.rows(Category.RUNTIME)
    rows = rows[axis.row_start[rows] >= 0]
    if not len(rows) or not len(work.row):
        return []
    finder = _Finder(trace, work, _sync_records(trace), _calls_of_threads(trace, work))
    found: dict[int, set[int]] = {}
    for row, events in [
        *_each(rows[is_named(trace, rows, _STREAM_SYNC.search)], finder.stream_sync),
        *_each(rows[is_named(trace, rows, _DEVICE_SYNC.search)], finder.device_sync),
        *_each(rows[is_named(trace, rows, _EVENT_SYNC.search)], finder.event_sync),
        *_blocking_copies(trace, work),
        *_held_launches(trace, rows, work),
    ]:
        if events:
            found.setdefault(row, set()).update(events)
    done_ns, over_ns = work.end_ns.tolist(), trace.end_ns[list(found)].tolist()
    return [
        HostWait(row, tuple(sorted(events)), min(max(done_ns[event] for event in events), over))
        for (row, events), over in sorted(zip(found.items(), over_ns, strict=True))
    ]


def stream_waits(trace: Trace, axis: HostAxis, work: DeviceWork) -> list[tuple[int, int]]:
    """Pairs (event, event of another stream that it waits for).

    `cudaStreamWaitEvent` holds up the next work of a stream until what another stream had been given is done. Which
    streams, only newer traces record; else the waiting one is that of the thread's next launch, and it waits for all
    others.
    """
    rows = trace.rows(Category.RUNTIME)
    rows = rows[axis.row_start[rows] >= 0]
    rows = rows[is_named(trace, rows, _STREAM_WAIT.search)]
    calls = _calls_of_threads(trace, work)
    pairs: dict[tuple[int, int], None] = {}
    for row in rows.tolist():
        moment = int(trace.ts_ns[row])
        event = _next_launched(calls, int(trace.thread[row]), moment)
        if event == NONE:
            continue
        for stream in range(work.streams):
            source = work.last_before(stream, moment)
            agrees = source != NONE and work.end_ns[source] <= work.start_ns[event]
            if agrees and stream != work.stream[event]:
                pairs[event, source] = None
    return list(pairs)


def unrecorded_waits(work: DeviceWork, gap_ns: IntArray) -> list[tuple[int, int]]:
    """The same pairs for waits that left no record: events with an unexplained gap that begin as another stream's ends.

    The other event must have been launched no later, and its end must explain nearly all of the gap.
    """
    waiting = np.flatnonzero(gap_ns >= _LONG_GAP_NS)
    latest = np.full(len(waiting), NONE, dtype=np.int64)
    latest_end = work.start_ns[waiting] - np.minimum(_PROMPT_NS, gap_ns[waiting])
    for stream in range(work.streams):
        low, high = work.first[stream], work.first[stream + 1]
        source = low + np.searchsorted(work.end_ns[low:high], work.start_ns[waiting], side="right") - 1
        source = np.maximum(source, low)
        end = work.end_ns[source]
        better = (end > latest_end) & (end <= work.start_ns[waiting]) & (work.stream[waiting] != stream)
        better &= work.called_ns[source] <= work.called_ns[waiting]
        latest[better], latest_end[better] = source[better], end[better]
    explained = latest >= 0
    return list(zip(waiting[explained].tolist(), latest[explained].tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class _SyncRecord:
    stream: int
    event: int


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds what one synchronising call waits for. Each method answers the events that agree with the recording."""

    trace: Trace
    work: DeviceWork
    records: dict[int, _SyncRecord]
    calls: dict[int, tuple[IntArray, IntArray]]

    def stream_sync(self, row: int) -> list[int]:
        """The last event of the stream that `row` synchronises; of all streams the latest that agrees, if unknown."""
        moment, over = self._span(row)
        record = self.records.get(int(self.trace.correlation[row]))
        if record and record.stream >= 0:
            streams = np.flatnonzero(self.work.stream_id == record.stream).tolist()
        else:
            streams = self._last_used(row)
        return self._latest(streams, moment, over) or self._latest(range(self.work.streams), moment, over)

    def device_sync(self, row: int) -> list[int]:
        """The last event of every stream."""
        moment, over = self._span(row)
        events = [self.work.last_before(stream, moment) for stream in range(self.work.streams)]
        return [event for event in events if event != NONE and self.work.end_ns[event] <= over]

    def event_sync(self, row: int) -> list[int]:
        """What had been given to the event's stream when the event was recorded."""
        record = self.records.get(int(self.trace.correlation[row]))
        if record and record.event > 0:
            recorded = np.flatnonzero(self.trace.correlation == record.event)
            recorded = recorded[self.trace.cat[recorded] == Category.RUNTIME]
            if len(recorded):
                moment = int(self.trace.ts_ns[recorded[0]])
                streams = np.flatnonzero(self.work.stream_id == record.stream)
                events = [self.work.last_before(int(stream), moment) for stream in streams]
                return [e for e in events if e != NONE and self.work.end_ns[e] <= self._span(row)[1]]
        return self.whatever_ended(row, _TELLING_WAIT_NS)

    def _latest(self, streams: Iterable[int], moment: int, over: int) -> list[int]:
        events = [self.work.last_before(stream, moment) for stream in streams]
        done = [event for event in events if event != NONE and self.work.end_ns[event] <= over]
        return [max(done, key=lambda event: int(self.work.end_ns[event]))] if done else []

    def whatever_ended(self, row: int, at_least_ns: int) -> list[int]:
        """The event whose end let a long call go on: the latest that ended in its second half."""
        rows = np.array([row]) if self.trace.dur_ns[row] >= at_least_ns else _NO_ROWS
        return [event for event in _latest_done(self.trace, self.work, rows).tolist() if event != NONE]

    def _span(self, row: int) -> tuple[int, int]:
        moment = int(self.trace.ts_ns[row])
        return moment, moment + int(self.trace.dur_ns[row]) + _CLOCK_TOLERANCE_NS

    def _last_used(self, row: int) -> list[int]:
        called, events = self.calls.get(int(self.trace.thread[row]), (_NO_ROWS, _NO_ROWS))
        place = int(np.searchsorted(called, self.trace.ts_ns[row])) - 1
        return [int(self.work.stream[events[place]])] if place >= 0 else []


_NO_ROWS: IntArray = np.empty(0, dtype=np.int64)


def _each(rows: IntArray, find: Callable[[int], list[int]]) -> list[tuple[int, list[int]]]:
    return [(row, find(row)) for row in rows.tolist()]


def _blocking_copies(trace: Trace, work: DeviceWork) -> list[tuple[int, list[int]]]:
    """Copies whose call returned only when the copy was done, as those from and to pageable memory do."""
    copies = np.flatnonzero((trace.cat[work.row] != Category.KERNEL) & (work.call >= 0))
    over = trace.end_ns[work.call[copies]] >= work.end_ns[copies] - _CLOCK_TOLERANCE_NS // 2
    return [(int(work.call[event]), [event]) for event in copies[over].tolist()]


def _held_launches(trace: Trace, rows: IntArray, work: DeviceWork) -> list[tuple[int, list[int]]]:
    """Launching calls that a full queue held up: long, while hundreds of events had been launched and not run."""
    calls = rows[is_named(trace, rows, _LAUNCH.search)]
    if not len(calls):
        return []
    at_least_ns = int(_HELD_RATIO * quartiles(trace.dur_ns[calls])[0])
    long = calls[trace.dur_ns[calls] > at_least_ns]
    launched = np.searchsorted(np.sort(work.called_ns), trace.ts_ns[long])
    done = np.searchsorted(np.sort(work.end_ns), trace.ts_ns[long])
    held = long[launched - done >= _DEEP_QUEUE]
    events = _latest_done(trace, work, held)
    return [(row, [event]) for row, event in zip(held.tolist(), events.tolist(), strict=True) if event != NONE]


def _latest_done(trace: Trace, work: DeviceWork, calls: IntArray) -> IntArray:
    """For each call the latest event launched before it that ended in its second half; NONE where none did."""
    moment, took = trace.ts_ns[calls], trace.dur_ns[calls]
    latest, latest_end = np.full(len(calls), NONE, dtype=np.int64), moment + took // 2
    for stream in range(work.streams):
        event = work.last_done(stream, moment, moment + took + _CLOCK_TOLERANCE_NS)
        end = np.where(event >= 0, work.end_ns[event], NONE)
        better = end > latest_end
        latest[better], latest_end[better] = event[better], end[better]
    return latest


def _sync_records(trace: Trace) -> dict[int, _SyncRecord]:
    """What `cuda_sync` records say, by the correlation they share with the runtime call."""
    rows = trace.rows(Category.SYNC)
    return {
        int(trace.correlation[row]): _SyncRecord(int(trace.sync_stream[row]), int(trace.sync_event[row]))
        for row in rows.tolist()
    }


def _calls_of_threads(trace: Trace, work: DeviceWork) -> dict[int, tuple[IntArray, IntArray]]:
    """For each thread the times of its launches, in order, and the events launched."""
    events = np.flatnonzero(work.call >= 0)
    events = events[np.argsort(trace.ts_ns[work.call[events]], kind="stable")]
    thread, called = trace.thread[work.call[events]], trace.ts_ns[work.call[events]]
    return {t: (called[thread == t], events[thread == t]) for t in distinct(thread).tolist()}


def _next_launched(calls: dict[int, tuple[IntArray, IntArray]], thread: int, moment: int) -> int:
    called, events = calls.get(thread, (_NO_ROWS, _NO_ROWS))
    place = int(np.searchsorted(called, moment))
    return int(events[place]) if place < len(events) else NONE
