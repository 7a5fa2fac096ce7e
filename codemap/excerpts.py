"""The source of the function round a place, as a dossier quotes it."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import dedent

from ..analyzer.diagnosis.dossier import Excerpt
from ..analyzer.findings import Location
from .notebook import cells_of
from .source import Function, SourceFile
from .workspace import Workspace

_AROUND = 15
"""Lines on each side of a place in no function."""
_MOST_LINES = 160
"""Of a function; of a longer one, those round the place."""


def excerpt(workspace: Workspace, location: Location | None) -> Excerpt | None:
    """The whole function that holds the place, dedented, the place's line marked; of a notebook outside functions, the
    cell. Lines count as inside the program: a notebook's cells are one text. None where there is no such line."""
    file = workspace.file(location.path) if location is not None else None
    if file is None or location is None:
        return None
    line = _line(file, location)
    if not 0 < line <= len(file.lines):
        return None
    first, last, qualname = _reach(file, line)
    return Excerpt(location.path, qualname, first, dedented(file.lines[first - 1 : last]), line)


def dedented(lines: Sequence[str]) -> tuple[str, ...]:
    """Lines of a file as an excerpt quotes them."""
    return tuple(dedent("\n".join(lines)).split("\n"))


def _line(file: SourceFile, location: Location) -> int:
    """The line in the file's text, of a place that may be counted in a notebook's cell."""
    notebook = cells_of(file)
    if notebook is None or location.cell is None:
        return location.line
    first = next((cell.first_line for cell in notebook.cells if cell.number == location.cell), None)
    return 0 if first is None else first + location.line - 1


def _reach(file: SourceFile, line: int) -> tuple[int, int, str]:
    """First and last line of what is quoted, and the name of the function; "<module>" outside all."""
    holding = [one for one in file.functions if one.first_line <= line <= one.end_line and one.name != "<lambda>"]
    function = min(holding, key=_length, default=None)
    first, last = (function.first_line, function.end_line) if function is not None else (1, len(file.lines))
    if function is None or (function.name == "<module>" and _length(function) == len(file.lines)):
        first, last = max(first, line - _AROUND), min(last, line + _AROUND)
    elif _length(function) > _MOST_LINES:
        first, last = max(first, line - _MOST_LINES // 2), min(last, line + _MOST_LINES // 2 - 1)
    while last > line and not file.lines[last - 1].strip():
        last -= 1
    return first, last, function.qualname if function is not None else "<module>"


def _length(function: Function) -> int:
    return function.end_line - function.first_line + 1
