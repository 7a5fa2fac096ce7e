"""Jupyter notebooks: the code cells of one, as one Python text with a table of which lines are which cell's.

Everywhere inside, a notebook is a file like any other whose lines are those of its code cells, one after the other,
with an empty line behind each: what is put behind a cell's last statement then belongs to that cell.
Where people or editors are told, a line becomes a cell's number (from 1, all cells counted, as editors do) and a line
of that cell. Markdown cells, outputs and metadata are never looked at.
"""

from __future__ import annotations

import ast
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec

from .magics import plain_lines
from .source import Function, SourceFile, parse_source, split_lines

NOTEBOOK_SUFFIX = ".ipynb"


class _StoredCell(msgspec.Struct):
    cell_type: str = ""
    source: str | list[str] = ""
    execution_count: int | None = None


class _Language(msgspec.Struct):
    name: str = ""
    language: str = ""


class _Metadata(msgspec.Struct):
    language_info: _Language = msgspec.field(default_factory=_Language)
    kernelspec: _Language = msgspec.field(default_factory=_Language)


class _Stored(msgspec.Struct):
    cells: list[_StoredCell] | None = None
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_decoder = msgspec.json.Decoder(_Stored)


@dataclass(frozen=True, slots=True)
class Cell:
    """One code cell."""

    number: int
    """Its place among all cells of the notebook, from 1."""
    source: tuple[str, ...]
    """Its lines as they are written."""
    first_line: int
    """The line of the notebook's text that is its first."""
    execution_count: int | None = None
    problem: str = ""
    """Why its lines are left empty; "" if they are not."""


@dataclass(frozen=True)
class Notebook:
    """The code of a notebook."""

    cells: tuple[Cell, ...]
    """The code cells."""
    lines: tuple[str, ...]
    """All their lines as plain Python, an empty one behind each cell."""
    error: str = ""
    """Why it cannot be read; "" if it can."""

    @cached_property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The same lines as they are written."""
        return tuple(line for cell in self.cells for line in (*cell.source, "")) or ("",)

    def cell_at(self, line: int) -> Cell | None:
        """The cell that a line (from 1) of the text belongs to, the empty one behind it too."""
        position = bisect_right(self._starts, line) - 1
        return self.cells[position] if position >= 0 and line <= len(self.lines) else None

    @property
    def problems(self) -> tuple[str, ...]:
        """A sentence for each cell that was left out."""
        return tuple(f"cell {cell.number}: {cell.problem}" for cell in self.cells if cell.problem)

    @cached_property
    def _starts(self) -> list[int]:
        return [cell.first_line for cell in self.cells]


def read_notebook(data: bytes) -> Notebook:
    """The notebook stored as `data`. One that cannot be read has no cells, and says why."""
    try:
        stored = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return Notebook((), ("",), f"no notebook: {error}")
    if stored.cells is None:
        return Notebook((), ("",), "no notebook of format 4: it has no list of cells")
    language = stored.metadata.language_info.name or stored.metadata.kernelspec.language
    if language and not language.lower().startswith(("python", "ipython")):
        return Notebook((), ("",), f"a notebook in {language}")
    sources = [
        (number, _joined(cell.source), cell.execution_count)
        for number, cell in enumerate(stored.cells, start=1)
        if cell.cell_type == "code"
    ]
    return notebook_of(sources)


def notebook_of(sources: Sequence[tuple[int, str, int | None]]) -> Notebook:
    """The notebook with these code cells: number, text and execution count of each."""
    cells: list[Cell] = []
    lines: list[str] = []
    for number, source, count in sources:
        written = split_lines(source)
        plain, problem = _checked(plain_lines(written))
        cells.append(Cell(number, written, len(lines) + 1, count, problem))
        lines += [*plain, ""]
    return Notebook(tuple(cells), tuple(lines) or ("",))


def parse_notebook(path: str, notebook: Notebook) -> SourceFile:
    """The notebook as a source file. Each cell is a `<module>` of its own beside the whole one: so it is run."""
    file = parse_source(path, notebook.text, notebook.error)
    if file.tree is None:
        return file
    whole, *functions = file.functions
    parts = _modules(notebook, file.tree.body)
    ordered = sorted([*parts, *functions], key=lambda one: (one.first_line, -one.end_line))
    return replace(file, functions=(whole, *ordered), derived={Notebook: notebook})


def cells_of(file: SourceFile) -> Notebook | None:
    """The notebook that a source file was made from; None for any other."""
    return file.derived.get(Notebook)


def _modules(notebook: Notebook, body: list[ast.stmt]) -> list[Function]:
    """What a cell runs at top level, for each cell."""
    parts: list[Function] = []
    starts = [statement.lineno for statement in body]
    for cell in notebook.cells:
        last = cell.first_line + len(cell.source) - 1
        own = body[bisect_left(starts, cell.first_line) : bisect_right(starts, last)]
        parts.append(Function("<module>", "<module>", cell.first_line, last, ast.Module(own, [])))
    return parts


def _joined(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)


def _checked(lines: list[str]) -> tuple[list[str], str]:
    """The lines of one cell, all empty if they are no Python: one such cell must not cost the others their places."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse("\n".join(lines))
    except SyntaxError as error:
        return [""] * len(lines), f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return [""] * len(lines), f"cannot be parsed: {error}"
    return lines, ""
