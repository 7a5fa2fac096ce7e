"""Exact executed lines: the profiler's event tree, which exists in the recorded process alone, joined to the file.

The tree knows the line that each Python event was called from; the file knows the numbers by which later readers find
the event. The two are joined by start and name (26,446 of 26,446 events of a measured run), where clocks were rounded
by rank among events of one name. Both are internal to torch: whatever is not there any more costs the lines, no more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...analyzer.trace.recording import ExactLines
from .exported import Exported
from .own import OwnFiles
from .stepping import Moves
from .traced import Rows, Timetable, frame_file, is_operator

_ENOUGH = 0.99
"""Share of the events that a join must find, and of the lines on which tree and tracer must agree."""


@dataclass(frozen=True, slots=True)
class PythonCall:
    """A Python event of the tree: when, its name, and the executed line of its caller."""

    start_ns: int
    name: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class BareOperator:
    """An operator that a frame of the program itself ran, with no Python event in between."""

    start_ns: int
    external_id: int
    name: str
    file: str
    """Of the frame's function, as the profiler names it."""


@dataclass(frozen=True, slots=True)
class Calls:
    """What the tree says."""

    python: tuple[PythonCall, ...]
    operators: tuple[BareOperator, ...]


def read_tree(results: Any) -> Calls:
    """Walk `prof.profiler.kineto_results`. Raises AttributeError or TypeError where torch has no such tree."""
    python: list[PythonCall] = []
    operators: list[BareOperator] = []
    # An explicit stack: programs nest deeper than Python recurses. `frame` is the file of the innermost frame if
    # nothing but that frame stands above the event.
    waiting: list[tuple[Any, str]] = [(root, "") for root in results.experimental_event_tree()]
    while waiting:
        event, frame = waiting.pop()
        name, caller = _said(event)
        if caller is not None:
            python.append(PythonCall(event.start_time_ns, name, *caller))
            frame = frame_file(name)
        elif frame and is_operator(name):
            operators.append(BareOperator(event.start_time_ns, event.correlation_id, name, frame))
            frame = ""
        waiting += [(child, frame) for child in event.children]
    return Calls(tuple(python), tuple(operators))


def _said(event: Any) -> tuple[str, tuple[str, int] | None]:
    """An event's name, and the file and line of its caller if it is a Python event."""
    try:
        caller = getattr(event.extra_fields, "caller", None)
        return event.name, (caller.file_name, caller.line_number) if caller is not None else None
    except UnicodeDecodeError:  # seen of calls that were still running when the profiler stopped
        return "", None


def python_rows(calls: Sequence[PythonCall], exported: Exported, dropped: Collection[int]) -> Rows:
    """("Python id", file, line) of every Python event of the file that the tree knows; empty if they do not match."""
    known = {(call.start_ns, call.name): call for call in calls}
    wanted = [
        (event, exported.unix_ns(event))
        for i, event in enumerate(exported.events)
        if event.cat == "python_function" and event.args.python_id is not None and i not in dropped
    ]
    found = [(event.args.python_id or 0, call) for event, ns in wanted if (call := known.get((ns, event.name)))]
    if len(found) < _ENOUGH * len(wanted):
        found = list(_by_rank(calls, exported, dropped))
        if len(found) < _ENOUGH * len(wanted):
            return []
    return sorted((python_id, call.file, call.line) for python_id, call in found if call.line > 0)


def _by_rank(
    calls: Sequence[PythonCall], exported: Exported, dropped: Collection[int]
) -> Iterator[tuple[int, PythonCall]]:
    """The join where the file's clock is coarser than the tree's."""
    of_name: defaultdict[str, list[PythonCall]] = defaultdict(list)
    for call in sorted(calls, key=lambda call: call.start_ns):
        of_name[call.name].append(call)
    counts = Counter(event.name for event in exported.events if event.cat == "python_function")
    rank: Counter[str] = Counter()
    rows = [(event.ts, i, event) for i, event in enumerate(exported.events) if event.cat == "python_function"]
    for _, i, event in sorted(rows, key=lambda row: row[:2]):
        place = rank[event.name]
        rank[event.name] += 1
        if counts[event.name] == len(of_name[event.name]) and event.args.python_id is not None and i not in dropped:
            yield event.args.python_id, of_name[event.name][place]


def operator_rows(calls: Calls, moves: Moves, files: OwnFiles) -> tuple[Rows, str]:
    """("External id", file, line) of every bare operator of the program's own frames, and what went wrong, or "".

    The tracer's line at the operator's start is taken where it lies in the file of the operator's frame. Whether the
    two clocks are one is seen on the Python events, whose lines are known: if they disagree, no line is given.
    """
    if not moves:
        return [], ""
    table = Timetable(moves, files)
    checked = [call for call in calls.python if files.is_own(call.file) and call.start_ns >= table.first_own_ns]
    agreeing = sum(table.at(call.start_ns) == (files.full(call.file), call.line) for call in checked)
    if checked and agreeing < _ENOUGH * len(checked):
        share = round(100 * agreeing / len(checked))
        return [], f"operators without a Python event have no line: the line tracer fits {share} % of the calls alone"
    rows = [
        (operator.external_id, file, line)
        for operator in calls.operators
        if files.is_own(operator.file)
        for file, line in [table.at(operator.start_ns)]
        if file == files.full(operator.file)
    ]
    return sorted(rows), ""


class FileTable:
    """Files by number, as `Recording.files`."""

    def __init__(self, files: OwnFiles) -> None:
        """`files` knows what the names mean."""
        self._files = files
        self._number: dict[str, int] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The files, in order of their numbers."""
        return tuple(self._number)

    def number(self, name: str) -> int:
        """The number of a file; a new one if it is new."""
        return self._number.setdefault(self._files.shown(name), len(self._number))

    def columns(self, rows: Rows) -> ExactLines:
        """Rows (id, file, line) as columns."""
        ids, numbers, lines = [], [], []
        for identifier, file, line in rows:
            ids.append(identifier)
            numbers.append(self.number(file))
            lines.append(line)
        return ExactLines(tuple(ids), tuple(numbers), tuple(lines))
