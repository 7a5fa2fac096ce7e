"""Small programs run twice under the profiler without stacks: once as they are, once with each operator's line."""

from __future__ import annotations

import runpy
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.model import NONE, Category
from torchtraceap.analyzer.trace.read import read_trace
from torchtraceap.codemap.knowledge import Knowledge
from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.recorded import RecordedFiles
from torchtraceap.codemap.sequence.placer import SequencePlacer
from torchtraceap.codemap.statements import Place

torch = pytest.importorskip("torch")

_MARK = "LINE "
_BUILT = "# built"
"""Ends the lines that make layers: filling their parameters is no part of a step."""


@dataclass(frozen=True, slots=True)
class Placed:
    """One top-level operator: where it ran, and where it was placed."""

    name: str
    line: int
    place: Place | None

    @property
    def found(self) -> int:
        """The line that was named; 0 for none, or for a function's."""
        return self.place.line if self.place is not None and self.place.note == "" else 0


def place_program(source: str, folder: Path, *, shapes: bool = True) -> list[Placed]:
    """Run a program, and place every operator of it that is no part of the backward pass or of an optimizer."""
    path = folder / "program" / "main.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    plain, marked = _record(path, folder, shapes, marks=False), _record(path, folder, shapes, marks=True)
    placer = placer_for(plain, path.parent)
    lines = _lines(marked)
    rows = _operators(plain)
    assert [plain.trace.name_of(row) for row in rows] == [name for name, _ in lines], "the two runs differ"
    built = {number for number, text in enumerate(source.splitlines(), start=1) if text.endswith(_BUILT)}
    return [
        Placed(name, line, placer.locate(row))
        for row, (name, line) in zip(rows, lines, strict=True)
        if line > 0 and line not in built
    ]


def record_program(source: str, folder: Path) -> Timeline:
    """A recording of a program, with shapes."""
    path = folder / "program" / "main.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    return _record(path, folder, shapes=True, marks=False)


def placer_for(timeline: Timeline, folder: Path) -> SequencePlacer:
    """A placer of a recording in a workspace."""
    workspace = open_workspace(folder)
    return SequencePlacer(timeline, Knowledge(workspace), RecordedFiles(workspace, ()))


def _record(path: Path, folder: Path, shapes: bool, *, marks: bool) -> Timeline:
    name = str(path)

    def mark(line: int) -> None:
        with torch.profiler.record_function(f"{_MARK}{line}"):
            pass

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != name:
            return None
        if event == "line":
            mark(frame.f_lineno)
        elif event == "return":
            caller = frame.f_back
            while caller is not None and caller.f_code.co_filename != name:
                caller = caller.f_back
            if caller is not None:
                mark(caller.f_lineno)
        return trace

    torch.manual_seed(0)
    out = folder / f"trace{marks}.json"
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=shapes) as profiler:
        if marks:
            sys.settrace(trace)
        try:
            runpy.run_path(name, run_name="__main__")
        finally:
            sys.settrace(None)
    profiler.export_chrome_trace(str(out))
    return build_timeline(read_trace(out))


def _operators(timeline: Timeline) -> list[int]:
    trace, tree = timeline.trace, timeline.tree
    found = []
    for row in trace.rows(Category.CPU_OP).tolist():
        around = [trace.name_of(each) for each in tree.ancestors(row) if not trace.name_of(each).startswith(_MARK)]
        is_inner = any(trace.cat[each] == Category.CPU_OP for each in tree.ancestors(row))
        if not is_inner and not any(one.startswith("Optimizer.") for one in around) and timeline.phase[row] != 3:
            found.append(row)
    return found


def _lines(timeline: Timeline) -> list[tuple[str, int]]:
    """Name and line of each operator, in time order."""
    trace = timeline.trace
    wanted = set(_operators(timeline))
    line, found = NONE, []
    for row in range(len(trace)):
        name = trace.name_of(row)
        if name.startswith(_MARK):
            line = int(name.removeprefix(_MARK))
        elif row in wanted:
            found.append((name, line))
    return found
