"""Executed lines by the line tracer alone: what is left where torch has no event tree any more.

Only calls and operators of the program's own frames get a line, and nothing checks that the clocks agree.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Collection, Iterator

from .exported import Exported, ExportedEvent
from .own import OwnFiles
from .stepping import Moves

Rows = list[tuple[int, str, int]]
"""("Python id" or "External id" of an event, file, line)."""


class Timetable:
    """Where the program was at which moment."""

    def __init__(self, moves: Moves, files: OwnFiles) -> None:
        """`moves` as the tracer noted them."""
        self._moves = moves
        self._files = files
        self._times = [move[0] for move in moves]

    @property
    def first_own_ns(self) -> int:
        """Before this lie only the calls that were running already, all said to begin with the recording."""
        return self._times[min(1, len(self._times) - 1)]

    def at(self, moment_ns: int) -> tuple[str, int]:
        """File and line; ("", 0) outside the own code."""
        place = bisect.bisect_right(self._times, moment_ns) - 1
        if place < 0 or not self._moves[place][2]:
            return "", 0
        return self._files.full(self._moves[place][1]), self._moves[place][2]


def rows_by_tracer(exported: Exported, dropped: Collection[int], moves: Moves, files: OwnFiles) -> tuple[Rows, Rows]:
    """("Python id", file, line) of Python events and ("External id", file, line) of operators."""
    if not moves:
        return [], []
    table = Timetable(moves, files)
    python: Rows = []
    operators: Rows = []
    for event, outer in _nested(exported, dropped):
        frame = frame_file(outer.name) if outer is not None and outer.cat == "python_function" else ""
        moment_ns = exported.unix_ns(event)
        if not frame or not files.is_own(frame) or moment_ns < table.first_own_ns:
            continue
        file, line = table.at(moment_ns)
        if file != files.full(frame):
            continue
        if event.args.python_id is not None:
            python.append((event.args.python_id, file, line))
        elif event.cat == "cpu_op" and is_operator(event.name) and event.args.external_id is not None:
            operators.append((event.args.external_id, file, line))
    return sorted(python), sorted(operators)


def is_operator(name: str) -> bool:
    """Whether an event of that name is an operator that a program calls."""
    return "::" in name and not name.startswith("autograd::")


def frame_file(name: str) -> str:
    """The file of a frame's event (`model.py(14): forward`); "" for a call of C code or a module."""
    file, _, rest = name.rpartition("(")
    return file if rest.partition(")")[0].isdigit() else ""


def _nested(exported: Exported, dropped: Collection[int]) -> Iterator[tuple[ExportedEvent, ExportedEvent | None]]:
    """Every Python event and operator with the innermost one around it."""
    threads: defaultdict[object, list[ExportedEvent]] = defaultdict(list)
    for i, event in enumerate(exported.events):
        is_call = event.cat == "python_function" or (event.cat == "cpu_op" and is_operator(event.name))
        if event.ph == "X" and is_call and i not in dropped:
            threads[event.pid, event.tid].append(event)
    for events in threads.values():
        around: list[ExportedEvent] = []
        for event in sorted(events, key=lambda event: (event.ts, -event.dur)):
            while around and around[-1].ts + around[-1].dur <= event.ts:
                around.pop()
            yield event, around[-1] if around else None
            around.append(event)
