"""Reports that speak of cells: places and edits counted in them, and what was left out."""

from __future__ import annotations

from torchtraceap.analyzer.findings import How, Location, TextEdit
from torchtraceap.codemap.in_cells import in_cell, written_line
from torchtraceap.codemap.notebook import parse_notebook, read_notebook

from .notebooks import notebook_json

NOTEBOOK = read_notebook(notebook_json("# T", "a = 1", "%time f()\nb = 2\nc = 3", markdown={0}))
FILE = parse_notebook("nb.ipynb", NOTEBOOK)


def at(line: int, end_line: int) -> Location:
    return Location("nb.ipynb", line, 1, end_line, 6, "<module>", How.STACK)


def test_places_are_counted_in_their_cell() -> None:
    place = in_cell(at(4, 5), NOTEBOOK)
    assert (place.cell, place.line, place.end_line, place.column) == (3, 2, 3, 1)
    assert in_cell(at(99, 99), NOTEBOOK) == at(99, 99)


def test_edits_behind_a_cell_s_last_statement_stay_in_it() -> None:
    edit = in_cell(TextEdit("nb.ipynb", 2, 1, 2, 1, "b = 2\n"), NOTEBOOK)
    assert (edit.cell, edit.line) == (2, 2)


def test_lines_are_shown_as_they_are_written() -> None:
    assert written_line(in_cell(at(3, 3), NOTEBOOK), lambda path: FILE) == "%time f()"
    assert written_line(at(1, 1), lambda path: FILE) == "a = 1"
    assert written_line(at(99, 99), lambda path: FILE) is None and written_line(at(1, 1), lambda path: None) is None
