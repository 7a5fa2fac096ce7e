"""`read_trace(path) -> Trace`: one profiler trace, of any variety, into columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from pathlib import Path

import numpy as np

from .categories import categorize
from .columns import Columns, RowBuilder, to_collectives
from .counters import NO_COUNTERS, CounterTable, Measured, from_recording, to_table
from .document import Batch, Document
from .events import Event
from .flows import FlowBuilder, MemoryBuilder
from .info import read_info
from .interning import NO_INPUTS, InternedInputs, Interner, ThreadTable, stack_text
from .limits import Limits, TraceCancelled, TraceError
from .model import DEVICE_CATEGORIES, NONE, Category, IntArray, Thread, Trace
from .nesting import deeper_than
from .problems import ProblemLog
from .recording import Recording, read_recording
from .scalars import MAX_DIGITS, to_text, whole_number
from .stream import read_blocks

IGNORED_PHASES = frozenset("CNDOPRcbentSTFpVv(),")
"""Phases of the trace event format that say nothing about time spent on a thread: counters, marks, async spans."""
ZERO_IS_ODD_NS = 60 * 10**9
"""An event at time 0 is believed if the rest of the trace begins within a minute of it."""


def read_trace(
    path: Path,
    *,
    limits: Limits | None = None,
    on_progress: Callable[[float], None] | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> Trace:
    """Read a trace written by the PyTorch profiler, plain or gzip-compressed.

    What cannot be used is counted in `Trace.problems`. `on_progress` gets the share of the file that has been read,
    0 to 1. Raises `TraceError` if nothing can be read, and `TraceCancelled` once `is_cancelled` answers True.
    """
    limits = limits or Limits()
    try:
        return _Reader(path, limits, on_progress or (lambda share: None), is_cancelled or (lambda: False)).read()
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from error
    except TraceCancelled:
        raise
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from error


class _Reader:
    def __init__(
        self, path: Path, limits: Limits, on_progress: Callable[[float], None], is_cancelled: Callable[[], bool]
    ) -> None:
        self._path = path
        self._limits = limits
        self._is_cancelled = is_cancelled
        self._problems = ProblemLog()
        self._document = Document(read_blocks(path, limits, self._problems, on_progress), limits, self._problems)
        self._phases: Interner[str] = Interner()
        self._threads = ThreadTable()
        self._rows = RowBuilder(self._threads, self._problems)
        self._flows = FlowBuilder(self._threads)
        self._memory = MemoryBuilder()
        self._ranges: list[Measured] = []

    def read(self) -> Trace:
        for batch in self._document.batches():
            if self._is_cancelled():
                raise TraceCancelled("cancelled")
            self._add(batch)
            self._ranges += batch.ranges
        return self._finish()

    def _add(self, batch: Batch) -> None:
        phases = self._phases.numbers([event.ph for event in batch.events])
        positions = np.asarray(batch.positions, dtype=np.int64)
        found = np.flatnonzero(np.bincount(phases)).tolist()
        for phase in found:
            if len(found) == 1:
                self._add_phase(batch.events[0].ph, batch.events, positions, batch.offset)
            else:
                is_it = phases == phase
                events = list(compress(batch.events, is_it.tolist()))
                self._add_phase(events[0].ph, events, positions[is_it], batch.offset)

    def _add_phase(self, phase: str, events: Sequence[Event], positions: IntArray, offset: int) -> None:
        if phase == "X":
            self._rows.add(events, positions, offset)
        elif phase in ("s", "f"):
            self._flows.add(events, is_start=phase == "s")
        elif phase in ("i", "I"):
            self._memory.add([event for event in events if event.name == MemoryBuilder.NAME])
        elif phase == "M":
            self._add_names(events)
        elif phase not in IGNORED_PHASES:
            message = "an event is of a phase that the PyTorch profiler does not write"
            self._problems.add("phase", message, offset=offset, count=len(events))

    def _add_names(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.name == "process_name":
                self._threads.name_process(event.pid, to_text(event.args.name))
            elif event.name == "thread_name":
                self._threads.name_thread(event.pid, event.tid, to_text(event.args.name))

    def _finish(self) -> Trace:
        columns = self._without_zero_times(self._rows.finish())
        flows = self._flows.finish()
        threads = self._threads.all()
        names = self._names()
        cats = self._rows.cats.values_by_number()
        columns["cat"] = categorize(columns["cat"], cats, columns["name"], names, columns["thread"], threads)
        _place_on_devices(columns, threads)
        input_table = self._input_table()
        recording, wrong = read_recording(self._path)
        if wrong:
            self._problems.add("recording", wrong)
        info = read_info(self._document.skeleton, self._path, self._document.bytes_read, self._limits, self._problems)
        return Trace(
            **columns,
            names=names,
            threads=threads,
            stacks=tuple(stack_text(text) for text in self._rows.stacks.values_by_number()),
            input_table=input_table,
            memory=self._memory.finish(),
            flows=flows,
            collectives=to_collectives(self._rows.collectives, columns["file_index"]),
            info=info,
            problems=self._problems.all(),
            recording=recording,
            counters=self._counters(recording),
        )

    def _counters(self, recording: Recording | None) -> CounterTable:
        """Those in the trace itself, in order of time, else those that the recording run measured beside it."""
        if self._ranges:
            return to_table("trace", self._ranges)
        return from_recording(recording.launches) if recording is not None else NO_COUNTERS

    def _names(self) -> tuple[str, ...]:
        names, longest = self._rows.names.values_by_number(), self._limits.max_name_chars
        if too_long := sum(len(name) > longest for name in names):
            message = f"a name is longer than {longest:,} characters; its end was cut"
            self._problems.add("limit", message, count=too_long)
        return tuple(name if len(name) <= longest else f"{name[:longest]}…" for name in names)

    def _input_table(self) -> InternedInputs:
        texts = self._rows.inputs.values_by_number()
        if deeper_than(b"".join(texts), self._limits.max_depth):
            too_deep = [deeper_than(text, self._limits.max_depth) for text in texts]
            message = f"an operator's inputs nest deeper than {self._limits.max_depth}; they were left out"
            self._problems.add("limit", message, count=sum(too_deep))
            texts = tuple(NO_INPUTS if deep else text for text, deep in zip(texts, too_deep, strict=True))
        return InternedInputs(texts)

    def _without_zero_times(self, columns: Columns) -> Columns:
        """Leave out events stamped 0 in a trace whose other times are far from it: those were never started."""
        is_zero = columns["ts_ns"] == 0
        others = columns["ts_ns"][~is_zero]
        if not is_zero.any() or not len(others) or others[0] < ZERO_IS_ODD_NS:
            return columns
        message = "an event is stamped 0, long before all others; it was left out"
        self._problems.add("zero-timestamp", message, count=int(np.count_nonzero(is_zero)))
        return {name: column[~is_zero] for name, column in columns.items()}


def _place_on_devices(columns: Columns, threads: tuple[Thread, ...]) -> None:
    """Give device rows without a recorded device or stream those that their pid and tid stand for."""
    wanted = (*DEVICE_CATEGORIES, Category.DEVICE_ANNOTATION, Category.SYNC)
    on_device = np.isin(columns["cat"], np.array(wanted, dtype=np.int8))
    devices = np.array([_number(thread.pid) for thread in threads] or [NONE], dtype=np.int64)
    streams = np.array([_number(thread.tid) for thread in threads] or [NONE], dtype=np.int64)
    for name, numbers in (("device", devices), ("stream", streams)):
        rows = np.flatnonzero(on_device & (columns[name] == NONE))
        columns[name][rows] = numbers[columns["thread"][rows]]


def _number(identifier: int | str) -> int:
    """The number in `7` or `"stream 7"`; NONE if there is none."""
    if isinstance(identifier, int):
        return identifier if abs(identifier) < 10**MAX_DIGITS else NONE
    return whole_number(identifier.removeprefix("stream ").strip())
