"""Complete events -> numpy columns, a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from .categories import category_of
from .events import Args, Event
from .interning import NO_INPUTS, Interner, ThreadTable, inputs_text
from .model import NONE, Category, Collective
from .problems import ProblemLog
from .scalars import to_integers, to_text
from .timestamps import INVALID, to_nanoseconds

Columns = dict[str, npt.NDArray[Any]]
"""Columns of equal length by name."""

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
"""The columns of a row, in the order of their making."""

_DEVICE_FIELDS = {"correlation": ("correlation",), "device": ("device",), "stream": ("stream",)}
_SIZE_FIELDS = {"size_bytes": ("bytes", "size")}
_SYNC_FIELDS = {"sync_stream": ("sync_stream",), "sync_event": ("sync_event",)}
_ID_FIELDS = {"external_id": ("external_id", "external_id_lower")}
_SEQUENCE_FIELDS = {"sequence": ("sequence",)}
_PYTHON_FIELDS = {"python_id": ("python_id",), "python_parent": ("python_parent",)}

FIELDS: dict[Category, dict[str, tuple[str, ...]]] = {
    Category.CPU_OP: _ID_FIELDS | _SEQUENCE_FIELDS,
    Category.USER_ANNOTATION: _ID_FIELDS | _SEQUENCE_FIELDS,
    Category.PYTHON_FUNCTION: _PYTHON_FIELDS,
    Category.RUNTIME: _ID_FIELDS | {"correlation": ("correlation",)},
    Category.KERNEL: _ID_FIELDS | _DEVICE_FIELDS | _SIZE_FIELDS | _SYNC_FIELDS,
    Category.MEMCPY: _ID_FIELDS | _DEVICE_FIELDS | _SIZE_FIELDS,
    Category.MEMSET: _ID_FIELDS | _DEVICE_FIELDS | _SIZE_FIELDS,
    Category.DEVICE_ANNOTATION: _ID_FIELDS | _DEVICE_FIELDS,
    Category.SYNC: _ID_FIELDS | _DEVICE_FIELDS | _SYNC_FIELDS,
    Category.OVERHEAD: _ID_FIELDS,
    Category.PROFILER: {},
    Category.COUNTER_RANGE: _ID_FIELDS,
    Category.OTHER: _ID_FIELDS | _DEVICE_FIELDS | _SEQUENCE_FIELDS | _PYTHON_FIELDS | _SIZE_FIELDS | _SYNC_FIELDS,
}
"""Integer columns that a category can fill, each with the fields of `Args` to take it from, first one recorded."""
WITH_INPUTS = (Category.CPU_OP, Category.USER_ANNOTATION, Category.OTHER)
WITH_COLLECTIVE = (Category.CPU_OP, Category.USER_ANNOTATION, Category.KERNEL, Category.OTHER)


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
        self._parts: list[Columns] = []

    def add(self, events: Sequence[Event], positions: npt.NDArray[np.int64], offset: int) -> None:
        """Append a row for each of `events`; those without a time are counted as problems and left out."""
        ts_ns = to_nanoseconds([event.ts for event in events])
        timed = ts_ns != INVALID
        if not timed.all():
            missing = int(np.count_nonzero(~timed))
            self._problems.add("timestamp", "an event has no usable time stamp", offset=offset, count=missing)
            keep = np.flatnonzero(timed)
            events, positions, ts_ns = [events[row] for row in keep.tolist()], positions[keep], ts_ns[keep]
        cats = [event.cat for event in events]
        columns: Columns = {
            "ts_ns": ts_ns,
            "dur_ns": self._durations(events, offset),
            "name": self.names.numbers([event.name for event in events]),
            "cat": self.cats.numbers(cats),
            "thread": self._threads.numbers([event.pid for event in events], [event.tid for event in events]),
            "file_index": positions,
        }
        for name, dtype in DTYPES.items():
            if name not in columns:
                columns[name] = np.full(len(events), NONE, dtype=dtype)
        for number in np.unique(columns["cat"]).tolist():
            rows = np.flatnonzero(columns["cat"] == number)
            args = [events[row].args for row in rows.tolist()]
            self._add_args(columns, rows, args, category_of(cats[rows[0]]))
        self._parts.append(columns)

    def _durations(self, events: Sequence[Event], offset: int) -> npt.NDArray[np.int64]:
        dur_ns = to_nanoseconds([event.dur for event in events])
        missing = dur_ns == INVALID
        if missing.any():
            count = int(np.count_nonzero(missing))
            self._problems.add(
                "duration", "an event has no usable duration; it counts as 0", offset=offset, count=count
            )
        negative = (dur_ns < 0) & ~missing
        if negative.any():
            count = int(np.count_nonzero(negative))
            message = "an event has a negative duration; it counts as 0"
            self._problems.add("negative-duration", message, offset=offset, count=count)
        return np.maximum(dur_ns, 0)

    def _add_args(self, columns: Columns, rows: npt.NDArray[np.int64], args: list[Args], category: Category) -> None:
        """Fill the columns that come from `args`, which belong to `rows`, all of one category."""
        for name, fields in FIELDS[category].items():
            values = to_integers(list(map(attrgetter(fields[0]), args)))
            for other in fields[1:]:
                if (values == NONE).any():
                    values = np.where(values == NONE, to_integers(list(map(attrgetter(other), args))), values)
            columns[name][rows] = values
        if category in WITH_INPUTS:
            columns["inputs"][rows] = self.inputs.numbers(map(inputs_text, args))
            columns["stack"][rows] = self.stacks.numbers([bytes(arg.stack) for arg in args])
        if category in WITH_COLLECTIVE:
            at = columns["file_index"]
            self.collectives += [(int(at[row]), arg) for row, arg in zip(rows, args, strict=True) if arg.collective]

    def finish(self) -> Columns:
        """All rows in order of (ts, -dur); rows that start and end together stay in file order."""
        parts, self._parts = self._parts, []
        if not parts:
            return {name: np.empty(0, dtype=dtype) for name, dtype in DTYPES.items()}
        ts_ns, dur_ns = (np.concatenate([part[name] for part in parts]) for name in ("ts_ns", "dur_ns"))
        order = np.lexsort((-dur_ns, ts_ns))
        columns: Columns = {}
        for name, dtype in DTYPES.items():
            # One column at a time, dropping its parts, keeps the peak near the size of the columns.
            columns[name] = np.concatenate([part.pop(name) for part in parts])[order].astype(dtype, copy=False)
        return columns


def to_collectives(calls: Sequence[tuple[int, Args]], file_index: npt.NDArray[np.integer]) -> tuple[Collective, ...]:
    """The collective calls among rows with the given file positions, in the order of the rows."""
    row_at = {int(position): row for row, position in enumerate(file_index)} if calls else {}
    found = []
    for position, args in calls:
        elements_in, elements_out, group_size = to_integers([args.elements_in, args.elements_out, args.group_size])
        collective = Collective(
            row=row_at[position],
            name=args.collective or "",
            elements_in=int(elements_in),
            elements_out=int(elements_out),
            dtype=to_text(args.dtype),
            group_size=int(group_size),
            group_name=to_text(args.group_name),
        )
        found.append(collective)
    return tuple(sorted(found, key=lambda collective: collective.row))
