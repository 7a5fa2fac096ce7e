"""What the server knows of one file with a finding on every statement."""

from __future__ import annotations

from collections.abc import Iterable

from torchtraceap.analyzer.findings import Finding, Hotspot, How, Location, Report, Severity, TraceSummary
from torchtraceap.codemap.drift_units import units_of
from torchtraceap.codemap.fixes.base import DeviceFacts
from torchtraceap.codemap.source import parse_source
from torchtraceap.codemap.statements import location_of
from torchtraceap.server.messages import Analyzed
from torchtraceap.server.state import FolderState

from .programs import Rendered

PATH = "a.py"

Span = tuple[int, int, int, int]
"""Line, column, last line, column past the end; from 1."""


def state_with(text: str, places: dict[str, Location], spots: Iterable[Hotspot] = ()) -> FolderState:
    """A folder whose one file has a finding at each place, known by a name."""
    summary = TraceSummary(("trace.json",), "CPU", 5, 1000.0, None, None, {}, (), ())
    report = Report(summary, tuple(_finding(name, place) for name, place in places.items()), tuple(spots))
    state = FolderState()
    anchors = (None,) * len(places)
    answer = Analyzed(1, report, DeviceFacts(), {PATH: text}, frozenset(range(len(places))), anchors, 0.1)
    state.take(answer, "trace.json", 1, lambda path: text)
    return state


def state_of(program: Rendered) -> FolderState:
    """A folder with a finding on every statement of a program, named after the statement's number."""
    file = parse_source(PATH, program.text)
    places = {}
    for number, line in program.line_of.items():
        unit = units_of(file).at(line)
        if unit is not None and not unit.defines:
            places[str(number)] = location_of(file, unit.node, unit.scope)
    return state_with(program.text, places)


def shown(state: FolderState) -> dict[str, Span]:
    """Where each finding is shown."""
    return {
        seen.finding.slug: (where.line, where.column, where.end_line, where.end_column)
        for seen in state.findings_in(PATH)
        if (where := seen.finding.location)
    }


def _finding(name: str, place: Location) -> Finding:
    return Finding("TAP999", name, Severity.WARNING, name, name, 100.0, 50.0, 5.0, 1.0, (), place)


def place_at(line: int, column: int, end_line: int, end_column: int) -> Location:
    """A place in the one file."""
    return Location(PATH, line, column, end_line, end_column, "f", How.STACK)
