"""Editing the code in a notebook's JSON: the changed cells' sources are replaced, every other byte stays.

What comes out is read again and compared before anybody gets it: but for those sources it must say what it said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import msgspec

from ..analyzer.findings import TextEdit
from .edits import EditError, apply_edits
from .in_cells import in_cell
from .notebook import Notebook

_KEY = re.compile(rb'"source"\s*:\s*')


class _RawCell(msgspec.Struct):
    source: msgspec.Raw = msgspec.Raw(b"")


class _RawNotebook(msgspec.Struct):
    cells: list[msgspec.Raw] = []


def edited_notebook(data: bytes, notebook: Notebook, edits: Iterable[TextEdit]) -> bytes:
    """The stored notebook `data`, read as `notebook`, after edits in the coordinates of its text.

    Raises EditError when edits overlap or lie in no cell, or the JSON cannot be changed without changing more.
    """
    sources = edited_sources(notebook, edits)
    document = json.loads(data)
    parts: list[bytes] = []
    done = 0
    for number, start, end in _cells(data):
        if number in sources:
            parts += [data[done:start], _replaced(data[start:end], sources[number])]
            done = end
            document["cells"][number - 1]["source"] = sources[number]
    changed = b"".join([*parts, data[done:]])
    if _joined(json.loads(changed)) != _joined(document):
        raise EditError("the notebook's JSON is of an unknown form")
    return changed


def edited_sources(notebook: Notebook, edits: Iterable[TextEdit]) -> Mapping[int, str]:
    """The new text of each cell that is changed, by its number. Raises EditError as `edited_notebook` does."""
    by_cell: dict[int, list[TextEdit]] = {}
    for edit in edits:
        placed = in_cell(edit, notebook)
        if placed.cell is None:
            raise EditError(f"{edit.path} has no cell at this place")
        by_cell.setdefault(placed.cell, []).append(placed)
    found = {}
    for cell in notebook.cells:
        if cell.number in by_cell:
            text = apply_edits("\n".join(cell.source) + "\n", by_cell[cell.number])
            found[cell.number] = text.removesuffix("\n")
    return found


def _cells(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Number of each cell, and where its JSON starts and ends."""
    try:
        cells = msgspec.json.decode(data, type=_RawNotebook).cells
    except msgspec.MsgspecError as error:
        raise EditError(f"no notebook: {error}") from error
    if not cells:
        return
    # Between one cell and the next there is but a comma and white space, so each is found where it stands.
    position = _start_of_list(data, bytes(cells[0]))
    for number, cell in enumerate(map(bytes, cells), start=1):
        start = data.index(cell, position)
        position = start + len(cell)
        yield number, start, position


def _start_of_list(data: bytes, first: bytes) -> int:
    for key in re.finditer(rb'"cells"\s*:\s*\[\s*', data):
        if data.startswith(first, key.end()):
            return key.end()
    raise EditError("the notebook's JSON is of an unknown form")


def _replaced(cell: bytes, source: str) -> bytes:
    """A cell's JSON with another source."""
    raw = bytes(msgspec.json.decode(cell, type=_RawCell).source)
    for key in _KEY.finditer(cell):
        if cell.startswith(raw, key.end()):
            return cell[: key.end()] + _encoded(raw, source) + cell[key.end() + len(raw) :]
    raise EditError("the notebook's JSON is of an unknown form")


def _encoded(raw: bytes, source: str) -> bytes:
    """The source as JSON, written as it was: as one text, or as a list with the same white space and the same lines."""
    is_ascii = b"\\u" in raw
    if not raw.startswith(b"["):
        return json.dumps(source, ensure_ascii=is_ascii).encode()
    known = {msgspec.json.decode(item, type=str): bytes(item) for item in _items(raw)}
    lines = [line + "\n" for line in source.split("\n")]
    lines[-1] = lines[-1].removesuffix("\n")
    wanted = [known.get(line) or json.dumps(line, ensure_ascii=is_ascii).encode() for line in lines if line]
    before, between, after = _spacing(raw)
    return b"[" + before + between.join(wanted) + after + b"]" if wanted else b"[]"


def _items(raw: bytes) -> list[msgspec.Raw]:
    return msgspec.json.decode(raw, type=list[msgspec.Raw])


def _spacing(raw: bytes) -> tuple[bytes, bytes, bytes]:
    """What stands before, between and behind the items of a list."""
    items = [bytes(item) for item in _items(raw)]
    if not items:
        return b"", b", ", b""
    spans: list[tuple[int, int]] = []
    position = 1
    for item in items:
        start = raw.index(item, position)
        position = start + len(item)
        spans.append((start, position))
    before = raw[1 : spans[0][0]]
    between = next((raw[one[1] : other[0]] for one, other in pairwise(spans)), b"," + (before or b" "))
    return before, between, raw[spans[-1][1] : -1]


def _joined(document: dict[str, object]) -> dict[str, object]:
    """The document with every source as one text."""
    cells = document.get("cells")
    assert isinstance(cells, list)
    return {**document, "cells": [{**cell, "source": "".join(cell["source"])} for cell in cells]}
