"""A report as people are told it: places in notebooks by cell, and line of that cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from ..analyzer.findings import Finding, Location, Report, TextEdit
from .modules import At, Module
from .notebook import NOTEBOOK_SUFFIX, Notebook, cells_of
from .source import SourceFile

FileOf = Callable[[str], SourceFile | None]
"""Gives the parsed file of a path."""
_Place = TypeVar("_Place", Location, TextEdit)


def in_cells(report: Report, file_of: FileOf) -> Report:
    """The report with every place in a notebook counted in its cell, and a word on cells that could not be used."""
    known: dict[str, Notebook | None] = {}

    def cell(place: _Place) -> _Place:
        if not place.path.endswith(NOTEBOOK_SUFFIX):
            return place
        if place.path not in known:
            file = file_of(place.path)
            known[place.path] = cells_of(file) if file is not None else None
        notebook = known[place.path]
        return place if notebook is None else in_cell(place, notebook)

    findings = tuple(_finding(finding, cell) for finding in report.findings)
    tables = replace(
        report.tables,
        attention=tuple(replace(row, location=row.location and cell(row.location)) for row in report.tables.attention),
        layout_changes=tuple(
            replace(row, location=row.location and cell(row.location)) for row in report.tables.layout_changes
        ),
        feature_maps=tuple(
            replace(row, location=row.location and cell(row.location)) for row in report.tables.feature_maps
        ),
    )
    notebooks = ((path, notebook) for path, notebook in known.items() if notebook is not None)
    left_out = tuple(f"{path}, {problem}" for path, notebook in notebooks for problem in notebook.problems)
    trace = replace(report.trace, problems=(*report.trace.problems, *left_out)) if left_out else report.trace
    return replace(report, trace=trace, findings=findings, tables=tables)


def in_cell(place: _Place, notebook: Notebook) -> _Place:
    """One place or edit, counted in its cell. One that is in no cell stays as it is."""
    cell = notebook.cell_at(place.line)
    if cell is None:
        return place
    above = cell.first_line - 1
    return replace(place, line=place.line - above, end_line=place.end_line - above, cell=cell.number)


def model_in_cells(module: Module, file_of: FileOf) -> Module:
    """A model's structure with every line of a notebook counted in its cell."""

    def told(at: At | None) -> At | None:
        file = file_of(at.path) if at is not None and at.path.endswith(NOTEBOOK_SUFFIX) else None
        notebook = cells_of(file) if file is not None else None
        cell = notebook.cell_at(at.line) if notebook is not None and at is not None else None
        return at if at is None or cell is None else replace(at, line=at.line - cell.first_line + 1, cell=cell.number)

    children = tuple(model_in_cells(child, file_of) for child in module.children)
    return replace(module, defined_at=told(module.defined_at), built_at=told(module.built_at), children=children)


def written_line(place: Location, file_of: FileOf) -> str | None:
    """The first line of a place as the file, or the notebook's cell, has it."""
    file = file_of(place.path)
    notebook = cells_of(file) if file is not None else None
    if notebook is not None and place.cell is not None:
        lines = next((cell.source for cell in notebook.cells if cell.number == place.cell), ())
    else:
        lines = file.lines if file is not None else ()
    return lines[place.line - 1] if 0 < place.line <= len(lines) else None


def _finding(finding: Finding, cell: Callable[..., object]) -> Finding:
    said = finding.diagnosis
    if said is not None and said.edit is not None:
        said = replace(said, edit=replace(said.edit, edits=tuple(cell(edit) for edit in said.edit.edits)))
    return replace(
        finding,
        location=finding.location and cell(finding.location),
        related=tuple(replace(one, location=cell(one.location)) for one in finding.related),
        fixes=tuple(replace(fix, edits=tuple(cell(edit) for edit in fix.edits)) for fix in finding.fixes),
        diagnosis=said,
    )
