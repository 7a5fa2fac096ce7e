"""The notebooks that a client has open: each one text, as everywhere in the program, and a document for each cell."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from urllib.parse import unquote

from lsprotocol import types as lsp
from pygls.workspace import TextDocument, Workspace

from ..analyzer.findings import TextEdit
from ..codemap.magics import plain_lines
from ..codemap.notebook import NOTEBOOK_SUFFIX, read_notebook
from ..codemap.source import split_lines
from .documents import Replacement
from .protocol import SourceDocument

SYNC = lsp.NotebookDocumentSyncOptions(
    notebook_selector=[
        lsp.NotebookDocumentFilterWithNotebook(
            notebook=lsp.NotebookDocumentFilterNotebookType(notebook_type="jupyter-notebook"),
            cells=[lsp.NotebookCellLanguage(language="python")],
        )
    ],
    save=True,
)
"""What the client is asked to tell of notebooks."""


@dataclass(frozen=True, slots=True)
class OpenCell:
    """A code cell and its document."""

    uri: str
    version: int | None
    source: tuple[str, ...]
    """Its lines."""
    first_line: int
    """Its first line in the notebook's text."""

    @property
    def above(self) -> int:
        """How many lines of the notebook's text stand above the cell."""
        return self.first_line - 1


@dataclass(frozen=True, slots=True)
class OpenNotebook:
    """A `Document` whose text is the lines of all code cells, an empty one behind each (`codemap/notebook.py`)."""

    uri: str
    version: int | None
    source: str
    """As plain Python, so far as it can be while somebody types."""
    stored: str
    """As a workspace takes it: the JSON of a notebook."""
    cells: tuple[OpenCell, ...]

    def cell_at(self, line: int) -> OpenCell | None:
        """The cell that a line (from 1) of the text belongs to."""
        position = bisect_right(self.cells, line, key=lambda cell: cell.first_line) - 1
        return self.cells[position] if position >= 0 else None

    def cell_of(self, uri: str) -> OpenCell | None:
        """The cell whose document has this URI."""
        return next((cell for cell in self.cells if cell.uri == uri), None)

    def edits_by_cell(self, edits: list[TextEdit]) -> Iterator[tuple[OpenCell, list[TextEdit]]]:
        """Edits of the notebook's text as edits of its cells' documents."""
        found: dict[str, list[TextEdit]] = {}
        for edit in edits:
            if (cell := self.cell_at(edit.line)) is not None:
                found.setdefault(cell.uri, []).append(_in_document(edit, cell))
        for cell in self.cells:
            if cell.uri in found:
                yield cell, found[cell.uri]


@dataclass(frozen=True, slots=True)
class NotebookText:
    """A `Document`: a notebook that is open as the text of its JSON, of which no line is one of its code."""

    uri: str
    version: int | None
    stored: str
    """The JSON."""

    @property
    def source(self) -> str:
        """As plain Python; "" while the JSON is none."""
        return _code_in(self.stored)


def opened_text(document: TextDocument) -> TextDocument | NotebookText:
    """An open text as the `Document` that it is."""
    if not document.uri.endswith(NOTEBOOK_SUFFIX):
        return document
    return NotebookText(document.uri, document.version, document.source)


class OpenNotebooks:
    """The open notebooks, each put together when the client tells of it."""

    def __init__(self) -> None:
        self._opened: dict[str, OpenNotebook] = {}

    def all(self) -> tuple[OpenNotebook, ...]:
        """All of them, as the client told of them last."""
        return tuple(self._opened.values())

    def follow(self, workspace: Workspace, uri: str) -> tuple[OpenNotebook, list[Replacement] | None] | None:
        """A notebook that was opened or changed, and what was typed in it since the last call, in the lines of its
        text: None where cells came, went or moved. None for one that is not open."""
        notebook = workspace.get_notebook_document(notebook_uri=uri)
        if notebook is None:
            return None
        key = unquote(uri)
        before = self._opened.get(key)
        after = self._opened[key] = _opened(notebook, _documents(workspace, notebook))
        taken: list[Replacement] = []
        for cell in after.cells:
            document = workspace.get_text_document(cell.uri)
            edits = document.take_edits() if isinstance(document, SourceDocument) else ()
            taken += [_moved_down(edit, cell.above) for edit in edits]
        same = before is not None and [cell.uri for cell in before.cells] == [cell.uri for cell in after.cells]
        return after, taken if same else None

    def forget(self, uri: str) -> None:
        """A notebook was closed."""
        self._opened.pop(unquote(uri), None)


def _documents(workspace: Workspace, notebook: lsp.NotebookDocument) -> list[tuple[int, TextDocument]]:
    """Number and document of each code cell that the client tells of. pygls keeps documents by their decoded URIs."""
    documents = workspace.text_documents
    return [
        (number, document)
        for number, cell in enumerate(notebook.cells, start=1)
        if cell.kind == lsp.NotebookCellKind.Code and (document := documents.get(unquote(cell.document))) is not None
    ]


def _opened(notebook: lsp.NotebookDocument, documents: list[tuple[int, TextDocument]]) -> OpenNotebook:
    cells: list[OpenCell] = []
    lines: list[str] = []
    for _, document in documents:
        written, plain = _lines(document.source)
        cells.append(OpenCell(document.uri, document.version, written, len(lines) + 1))
        lines += [*plain, ""]
    by_number = {number: document.source for number, document in documents}
    stored = [
        {"cell_type": "code" if number in by_number else "markdown", "source": by_number.get(number, "")}
        for number in range(1, len(notebook.cells) + 1)
    ]
    text = "\n".join(lines)
    return OpenNotebook(notebook.uri, notebook.version, text, json.dumps({"cells": stored}), tuple(cells))


@lru_cache(maxsize=1024)
def _lines(source: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A cell's lines as they are written, and as plain Python. Of a notebook's many cells one is typed in."""
    written = split_lines(source)
    return written, tuple(plain_lines(written))


@lru_cache(maxsize=4)
def _code_in(stored: str) -> str:
    return read_notebook(stored.encode("utf-8", "replace")).text


def _in_document(edit: TextEdit, cell: OpenCell) -> TextEdit:
    """An edit in the lines of a cell's document, which ends where the cell's empty line would begin."""
    last = len(cell.source)
    end = len(cell.source[-1]) + 1
    line, column, new_text = edit.line - cell.above, edit.column, edit.new_text
    end_line, end_column = edit.end_line - cell.above, edit.end_column
    if line > last:
        line, column, new_text = last, end, "\n" + new_text.removesuffix("\n")
    elif end_line > last:
        new_text = new_text.removesuffix("\n")
    if end_line > last:
        end_line, end_column = last, end
    return replace(edit, line=line, column=column, end_line=end_line, end_column=end_column, new_text=new_text)


def _moved_down(edit: Replacement, lines: int) -> Replacement:
    return replace(edit, line=edit.line + lines, end_line=edit.end_line + lines, new_end_line=edit.new_end_line + lines)
