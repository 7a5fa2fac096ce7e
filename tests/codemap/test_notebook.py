"""Notebooks as text: the lines of their code cells, IPython's own syntax taken out, nothing moved."""

from __future__ import annotations

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtraceap.codemap.magics import body_start, is_timed, plain_lines, transformed
from torchtraceap.codemap.notebook import cells_of, notebook_of, parse_notebook, read_notebook

from .notebooks import notebook_json


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("%matplotlib inline", "0                 "),
        ("!pip install torch", "0                 "),
        ("!x", "0 "),
        ("?torch", "0     "),
        ("torch.nn??", "0         "),
        ("%time y = f(x)", "0;    y = f(x)"),
        ("%timeit -n 10 -r3 f(x)", "0;                f(x)"),
        ("    %time f(x)", "    0;    f(x)"),
        ("files = !ls", "files = 0  "),
        ("a, b = %magic x", "a, b = 0       "),
        ("y = a % b", "y = a % b"),
        ("ok = a != b", "ok = a != b"),
        ("s = '%time' + \"!ls\"  # %no", "s = '%time' + \"!ls\"  # %no"),
        ("f(x='%d' % 3)", "f(x='%d' % 3)"),
    ],
)
def test_magics_become_plain_and_all_else_keeps_its_column(line: str, plain: str) -> None:
    assert plain_lines((line,)) == [plain]
    ast.parse(plain.lstrip())


def test_magics_are_only_where_a_statement_can_begin() -> None:
    lines = ("a = (1", "  % 3)", 's = """', "%no", '"""', "b = 1 + \\", "  2", "%yes \\", "  and on", "c = 1")
    assert plain_lines(lines) == [*lines[:7], "0     ", "", "c = 1"]


def test_cells_in_other_languages_are_empty_and_timed_ones_are_kept() -> None:
    assert plain_lines(("%%bash", "ls")) == ["", ""]
    assert plain_lines(("", "%%time", "f(x)")) == ["", "      ", "f(x)"]
    assert is_timed(("", "%%time", "f(x)")) and not is_timed(("f(x)",)) and not is_timed(("%%bash", "ls"))
    assert body_start(("", " ", "x = 1")) == 2 and body_start(("",)) == 0


@given(st.lists(st.text(alphabet="a =%!?\\'\"#()\n\té"), min_size=1).map(lambda rows: "\n".join(rows).split("\n")))
def test_lines_stay_as_many(lines: list[str]) -> None:
    assert len(plain_lines(tuple(lines))) == len(lines)


def test_what_ipython_compiles() -> None:
    """As `TransformerManager().transform_cell` of IPython 7.34 and 9.18 gives it."""
    assert transformed(("", "x = 1", "")) == "x = 1\n"
    assert transformed(("%precision 3", "if x:", "    !ls -l")) == (
        "get_ipython().run_line_magic('precision', '3')\nif x:\n    get_ipython().system('ls -l')\n"
    )
    assert transformed(("%%time", "f(x)")) == "get_ipython().run_cell_magic('time', '', 'f(x)\\n')\n"


def test_ipython_agrees() -> None:
    transformer = pytest.importorskip("IPython.core.inputtransformer2").TransformerManager()
    for cell in (
        "\n\nx = 1\n",
        "%precision 3\ny = 2",
        "!ls",
        "%%time\nf(x)",
        "%%capture out\n\nf(x)\n",
        "def f():\n  pass",
    ):
        assert transformed(tuple(cell.split("\n"))) == transformer.transform_cell(cell), cell


def test_a_notebook_is_the_lines_of_its_code_cells() -> None:
    notebook = read_notebook(notebook_json("# Title", "import torch\n", "def f(x):\n    return x", markdown={0}))
    assert [(cell.number, cell.first_line, cell.source) for cell in notebook.cells] == [
        (2, 1, ("import torch", "")),
        (3, 4, ("def f(x):", "    return x")),
    ]
    assert notebook.text == "import torch\n\n\ndef f(x):\n    return x\n"
    assert [cell and cell.number for cell in map(notebook.cell_at, range(8))] == [None, 2, 2, 2, 3, 3, 3, None]


def test_every_cell_is_a_module_of_its_own() -> None:
    file = parse_notebook("nb.ipynb", read_notebook(notebook_json("a = 1", "def f(x):\n    return x\nb = f(a)")))
    assert [(f.qualname, f.first_line, f.end_line) for f in file.functions] == [
        ("<module>", 1, 6), ("<module>", 1, 1), ("<module>", 3, 5), ("f", 3, 4),
    ]  # fmt: skip
    assert [len(f.node.body) for f in file.functions if isinstance(f.node, ast.Module)] == [3, 1, 2]
    assert cells_of(file) is not None


def test_a_cell_that_is_no_python_costs_the_others_nothing() -> None:
    notebook = read_notebook(notebook_json("a = 1", "pip install torch\nx", "b = 2"))
    assert notebook.lines == ("a = 1", "", "", "", "", "b = 2", "")
    assert notebook.problems == ("cell 2: line 1: invalid syntax",)
    assert notebook.written[2] == "pip install torch"
    file = parse_notebook("nb.ipynb", notebook)
    assert file.tree is not None and file.error == ""


def test_sources_are_lists_or_texts() -> None:
    cells = [
        {"cell_type": "code", "source": ["a = 1\n", "b = 2"], "outputs": [{"data": {"image/png": "x" * 99}}]},
        {"cell_type": "code", "source": "c = 3"},
    ]
    assert read_notebook(json.dumps({"cells": cells}).encode()).lines == ("a = 1", "b = 2", "", "c = 3", "")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no notebook"),
        (b"{", "no notebook"),
        (b"[1]", "no notebook"),
        (b"\xff\xfe", "no notebook"),
        (b'{"cells": 3}', "no notebook"),
        (b'{"cells": [{"cell_type": "code", "source": [1]}]}', "no notebook"),
        (b'{"worksheets": []}', "no notebook of format 4"),
        (b'{"cells": [], "metadata": {"kernelspec": {"language": "R"}}}', "a notebook in R"),
        (b'{"x":' + b"[" * 100_000, "no notebook"),
    ],
)
def test_what_is_no_python_notebook_says_why(data: bytes, said: str) -> None:
    notebook = read_notebook(data)
    assert notebook.cells == () and notebook.error.startswith(said)
    file = parse_notebook("nb.ipynb", notebook)
    assert file.tree is None and file.functions == () and file.error == notebook.error


def test_an_empty_notebook_is_an_empty_file() -> None:
    assert notebook_of([]).text == "" and notebook_of([(1, "", None)]).lines == ("", "")
