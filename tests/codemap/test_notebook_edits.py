"""Edits of a notebook's JSON: the code changes, and not another byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtraceap.analyzer.findings import TextEdit
from torchtraceap.codemap.edits import EditError
from torchtraceap.codemap.notebook import read_notebook
from torchtraceap.codemap.notebook_edits import edited_notebook

from .notebooks import notebook_json


def edit(line: int, column: int, end_line: int, end_column: int, text: str) -> TextEdit:
    return TextEdit("nb.ipynb", line, column, end_line, end_column, text)


def edited(data: bytes, *edits: TextEdit) -> bytes:
    return edited_notebook(data, read_notebook(data), edits)


def test_only_the_lines_that_change_are_written_anew() -> None:
    data = notebook_json("# Été", "a = 1\nb = 'é'", "c = 3", markdown={0})
    assert edited(data, edit(2, 1, 2, 2, "x")) == data.replace(b"b = '\xc3\xa9'", b"x = '\xc3\xa9'")
    assert edited(data, edit(4, 1, 4, 2, "y"), edit(1, 5, 1, 6, "9")) == data.replace(b"c = 3", b"y = 3").replace(
        b"a = 1", b"a = 9"
    )


def test_lines_come_and_go() -> None:
    data = notebook_json("a = 1\nb = 2", "c = 3")
    added = edited(data, edit(3, 1, 3, 1, "new = 1\n"), edit(4, 1, 4, 1, "import torch\n"))
    assert [cell.source for cell in read_notebook(added).cells] == [
        ("a = 1", "b = 2", "new = 1"),
        ("import torch", "c = 3"),
    ]
    gone = edited(data, edit(2, 1, 3, 1, ""), edit(4, 1, 5, 1, ""))
    assert [cell.source for cell in read_notebook(gone).cells] == [("a = 1",), ("",)]
    assert gone.count(b"\n") < data.count(b"\n")


@pytest.mark.parametrize(
    "cell",
    [
        '{"cell_type":"code","source":"a = 1\\nb = 2","outputs":[]}',
        '{"outputs": [{"source": "a = 1\\nb = 2"}], "source": ["a = 1\\n","b = 2"], "cell_type": "code"}',
        '{"cell_type": "code", "metadata": {"source": ["a"]}, "source" : [ "a = 1\\n" ,\n "b = 2" ]}',
        '{"cell_type": "code", "source": ["a = 1\\n", "b = 2"], "id": "\\u00e9"}',
    ],
)
def test_every_form_of_json_is_kept(cell: str) -> None:
    data = f'{{"metadata": {{"cells": [ 1 ]}}, "cells": [ {cell} , {cell}], "nbformat": 4}}'.encode()
    changed = edited(data, edit(5, 5, 5, 6, "7"))
    start = data.index(cell.encode()) + len(cell.encode())
    assert changed[:start] == data[:start] and len(changed) == len(data)
    assert [cell.source for cell in read_notebook(changed).cells] == [("a = 1", "b = 2"), ("a = 1", "b = 7")]


def test_magics_and_outputs_stay() -> None:
    cells = [{"cell_type": "code", "source": ["%time f(x)\n", "y = 1"], "outputs": [{"text": ["y = 1"]}]}]
    data = json.dumps({"cells": cells}).encode()
    assert edited(data, edit(2, 1, 2, 2, "z")) == data.replace(b'"y = 1"], "outputs"', b'"z = 1"], "outputs"')


@pytest.mark.parametrize("wrong", [edit(9, 1, 9, 1, "x"), edit(1, 99, 1, 99, "x"), edit(1, 1, 5, 1, "x")])
def test_edits_outside_a_cell_are_refused(wrong: TextEdit) -> None:
    with pytest.raises(EditError):
        edited(notebook_json("a = 1", "b = 2"), wrong)


def test_a_key_given_twice_is_refused() -> None:
    data = b'{"cells": [{"cell_type": "code", "source": "a", "source": "a"}]}'
    with pytest.raises(EditError):
        edited(data, edit(1, 1, 1, 2, "b"))


@given(
    st.lists(st.text(alphabet='ab"\\é\U0001f600 \t\n'), min_size=1, max_size=4),
    st.text(alphabet='xy"\\\n\u2028'),
    st.data(),
)
def test_other_cells_never_change(sources: list[str], new: str, draw: st.DataObject) -> None:
    data = notebook_json(*sources)
    notebook = read_notebook(data)
    cell = draw.draw(st.sampled_from(notebook.cells))
    changed = read_notebook(edited(data, edit(cell.first_line, 1, cell.first_line, 1, new)))
    for before, after in zip(notebook.cells, changed.cells, strict=True):
        wanted = "\n".join(before.source)
        assert "\n".join(after.source) == (new + wanted if before is cell else wanted)
