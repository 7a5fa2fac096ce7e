"""Complete events -> numpy columns, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .categories import category_of
from .events import NOTHING, Args, Event, Scalar
from .interning import NO_INPUTS, Interner, ThreadTable, inputs_texts
from .model import NONE, Category, Collective
from .problems import ProblemLog
from .scalars import to_integers, to_text
from .timestamps import INVALID, join_numbers, to_nanoseconds

Columns = dict[str, npt.NDArray[Any]]
"""Columns of equal length by name."""
Rows = npt.NDArray[np.int64] | slice

DTYPES = {
    "ts_ns": np.int64,
    "dur_ns": np.int64,
    "name": np.int32,
    "cat": np.int32,
    "thread": np.int32,
    "file_index": np.int64,
    "device": np.int32,
    "stream": np.int64,
    "correlation": np.int64,
    "external_id": np.int64,
    "sequence": np.int64,
    "python_id": np.int64,
    "python_parent": np.int64,
    "inputs": np.int32,
    "stack": np.int32,
    "size_bytes": np.int64,
    "sync_stream": np.int64,
    "sync_event": np.int64,
}

Read = Callable[[Iterable[Args]], list[Scalar]]
"""Reads one field of many events. Written out as comprehensions: this is where most of the time goes."""

_CORRELATION: dict[str, tuple[Read, ...]] = {"correlation": (lambda args: [a.correlation for a in args],)}
_EXTERNAL_ID: dict[str, tuple[Read, ...]] = {
    "external_id": (lambda args: [a.external_id for a in args], lambda args: [a.external_id_lower for a in args])
}
_SEQUENCE: dict[str, tuple[Read, ...]] = {"sequence": (lambda args: [a.sequence for a in args],)}
_PYTHON: dict[str, tuple[Read, ...]] = {
    "python_id": (lambda args: [a.python_id for a in args],),
    "python_parent": (lambda args: [a.python_parent for a in args],),
}
_PLACE: dict[str, tuple[Read, ...]] = {
    "device": (lambda args: [a.device for a in args],),
    "stream": (lambda args: [a.stream for a in args],),
}
_SIZE: dict[str, tuple[Read, ...]] = {
    "size_bytes": (lambda args: [a.bytes for a in args], lambda args: [a.size for a in args])
}
_SYNC: dict[str, tuple[Read, ...]] = {
    "sync_stream": (lambda args: [a.sync_stream for a in args],),
    "sync_event": (lambda args: [a.sync_event for a in args],),
}

FIELDS: dict[Category, dict[str, tuple[Read, ...]]] = {
    Category.CPU_OP: _EXTERNAL_ID | _SEQUENCE,
    Category.USER_ANNOTATION: _EXTERNAL_ID | _SEQUENCE,
    Category.PYTHON_FUNCTION: _PYTHON,
    Category.RUNTIME: _EXTERNAL_ID | _CORRELATION,
    Category.KERNEL: _EXTERNAL_ID | _CORRELATION | _PLACE,
    Category.MEMCPY: _EXTERNAL_ID | _CORRELATION | _PLACE | _SIZE,
    Category.MEMSET: _EXTERNAL_ID | _CORRELATION | _PLACE | _SIZE,
    Category.DEVICE_ANNOTATION: _EXTERNAL_ID | _CORRELATION | _PLACE,
    Category.SYNC: _EXTERNAL_ID | _CORRELATION | _PLACE | _SYNC,
    Category.OVERHEAD: _EXTERNAL_ID,
    Category.PROFILER: {},
    Category.COUNTER_RANGE: _EXTERNAL_ID | _PLACE,
    Category.OTHER: _EXTERNAL_ID | _CORRELATION | _SEQUENCE | _PYTHON | _PLACE | _SIZE | _SYNC,
}
"""Integer columns that a category can fill, each with the fields to take it from: the first that was recorded."""
FIELDS_OF_MIXED: dict[str, dict[str, tuple[Read, ...]]] = {
    "mtia_ccp_events": _EXTERNAL_ID | _CORRELATION | _PLACE | _SIZE | _SYNC,
}
"""The same for a `cat` whose events are told apart only later, by name."""
WITH_INPUTS = (Category.CPU_OP, Category.USER_ANNOTATION, Category.OTHER)
WITH_COLLECTIVE = (Category.CPU_OP, Category.USER_ANNOTATION, Category.KERNEL, Category.OTHER)

ROWS_TOGETHER = 1 << 13


@dataclass(frozen=True, slots=True)
class _Pending:
    """Rows whose times are still text."""

    columns: Columns
    ts: bytes
    dur: bytes
    offset: int


class RowBuilder:
    """Collects complete events."""

    def __init__(self, threads: ThreadTable, problems: ProblemLog) -> None:
        self.names: Interner[str] = Interner()
        self.cats: Interner[str] = Interner()
        self.inputs: Interner[bytes] = Interner(none=NO_INPUTS)
        self.stacks: Interner[bytes] = Interner(none=b"")
        self.collectives: list[tuple[int, Args]] = []
        """Position in the file and args of each collective call."""
        self._threads = threads
        self._problems = problems
        self._pending: list[_Pending] = []
        self._pending_rows = 0
        self._parts: list[Columns] = []

    def add(self, events: Sequence[Event], positions: npt.NDArray[np.int64], offset: int) -> None:
        """Append a row for each of `events`; `offset` is where in the document they begin."""
        columns: Columns = {
            "name": self.names.numbers([event.name for event in events]),
            "cat": self.cats.numbers([event.cat for event in events]),
            "thread": self._threads.numbers([(event.pid, event.tid) for event in events]),
            "file_index": positions,
        }
        args = [event.args for event in events]
        cats = np.flatnonzero(np.bincount(columns["cat"])).tolist()
        for cat in cats:
            if len(cats) == 1:
                self._add_args(columns, slice(None), args, events[0].cat)
                break
            rows = np.flatnonzero(columns["cat"] == cat)
            some = [args[row] for row in rows.tolist()]
            self._add_args(columns, rows, some, events[rows[0]].cat)
        times = join_numbers([event.ts for event in events]), join_numbers([event.dur for event in events])
        self._pending.append(_Pending(columns, *times, offset))
        self._pending_rows += len(events)
        if self._pending_rows >= ROWS_TOGETHER:
            self._flush()

    def _flush(self) -> None:
        """Turn what is pending into one part: numpy works best on many rows, the processor's cache on few events."""
        pending, self._pending, self._pending_rows = self._pending, [], 0
        parts = [some.columns for some in pending]
        sizes = [len(part["file_index"]) for part in parts]
        columns = {name: _joined(name, parts, sizes) for name in DTYPES if any(name in part for part in parts)}
        ts_ns = to_nanoseconds(b",".join([some.ts for some in pending]))
        dur_ns = to_nanoseconds(b",".join([some.dur for some in pending]))
        offset = pending[0].offset
        self._count(ts_ns == INVALID, "timestamp", "an event has no usable time stamp; it was left out", offset)
        self._count(dur_ns == INVALID, "duration", "an event has no usable duration; it counts as 0", offset)
        negative = (dur_ns < 0) & (dur_ns != INVALID)
        self._count(negative, "negative-duration", "an event has a negative duration; it counts as 0", offset)
        columns |= {"ts_ns": ts_ns, "dur_ns": np.maximum(dur_ns, 0)}
        timed = ts_ns != INVALID
        self._parts.append(columns if timed.all() else {name: column[timed] for name, column in columns.items()})

    def _count(self, rows: npt.NDArray[np.bool_], kind: str, message: str, offset: int) -> None:
        self._problems.add(kind, message, offset=offset, count=int(np.count_nonzero(rows)))

    def _add_args(self, columns: Columns, rows: Rows, args: Sequence[Args], cat: str) -> None:
        """Fill the columns that come from `args`, which belong to `rows`, all filed under `cat`."""
        category = category_of(cat)
        for name, fields in (FIELDS_OF_MIXED.get(cat) or FIELDS[category]).items():
            _put(columns, name, rows, _first_recorded(args, fields))
        if category in WITH_INPUTS:
            if (texts := inputs_texts(args)) is not None:
                _put(columns, "inputs", rows, self.inputs.numbers(texts))
            stacks = [arg.stack for arg in args]
            if stacks.count(NOTHING) != len(args):
                _put(columns, "stack", rows, self.stacks.numbers(map(bytes, stacks)))
        if category in WITH_COLLECTIVE:
            names = [arg.collective for arg in args]
            if names.count(None) != len(args):
                positions = columns["file_index"][rows].tolist()
                self.collectives += [pair for pair in zip(positions, args, strict=True) if pair[1].collective]

    def finish(self) -> Columns:
        """All rows in order of (ts, -dur); rows that start and end together stay in file order."""
        if self._pending:
            self._flush()
        parts, self._parts = self._parts, []
        if not parts:
            return {name: np.empty(0, dtype=dtype) for name, dtype in DTYPES.items()}
        sizes = [len(part["ts_ns"]) for part in parts]
        order = np.lexsort((-_joined("dur_ns", parts, sizes), _joined("ts_ns", parts, sizes)))
        columns: Columns = {}
        for name, dtype in DTYPES.items():
            if any(name in part for part in parts):
                columns[name] = _joined(name, parts, sizes)[order]
            else:
                columns[name] = np.full(len(order), NONE, dtype=dtype)
            # Dropping each column's parts keeps the peak near the size of the columns.
            for part in parts:
                part.pop(name, None)
        return columns


def _first_recorded(args: Sequence[Args], fields: Sequence[Read]) -> npt.NDArray[np.int64]:
    """For each of `args`, the first of `fields` that is recorded; else NONE."""
    values = to_integers(fields[0](args))
    for field in fields[1:]:
        missing = np.flatnonzero(values == NONE)
        if len(missing):
            values[missing] = to_integers(field([args[row] for row in missing.tolist()]))
    return values


def _put(columns: Columns, name: str, rows: Rows, values: npt.NDArray[Any]) -> None:
    if name not in columns:
        columns[name] = np.full(len(columns["cat"]), NONE, dtype=DTYPES[name])
    columns[name][rows] = values


def _joined(name: str, parts: Sequence[Columns], sizes: Sequence[int]) -> npt.NDArray[Any]:
    """One column of several parts with `sizes` rows; NONE where a part does not have it."""
    none = (np.full(size, NONE, dtype=DTYPES[name]) for size in sizes)
    return np.concatenate([part.get(name, missing) for part, missing in zip(parts, none, strict=True)])


def to_collectives(calls: Sequence[tuple[int, Args]], file_index: npt.NDArray[np.integer]) -> tuple[Collective, ...]:
    """The collective calls among rows with the given file positions, in the order of the rows."""
    positions = np.array([position for position, _ in calls], dtype=np.int64)
    order = np.argsort(file_index)
    places = np.searchsorted(file_index, positions, sorter=order)
    found = []
    for (position, args), place in zip(calls, places.tolist(), strict=True):
        row = int(order[place]) if place < len(order) else NONE
        if row == NONE or file_index[row] != position:  # left out, as it had no time
            continue
        elements_in, elements_out, group_size = to_integers([args.elements_in, args.elements_out, args.group_size])
        collective = Collective(
            row=row,
            name=args.collective or "",
            elements_in=int(elements_in),
            elements_out=int(elements_out),
            dtype=to_text(args.dtype),
            group_size=int(group_size),
            group_name=to_text(args.group_name),
        )
        found.append(collective)
    return tuple(sorted(found, key=lambda collective: collective.row))
