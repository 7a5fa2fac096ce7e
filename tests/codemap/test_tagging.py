"""Ranges round statements: where they go, what they are called, and where they are refused."""

from __future__ import annotations

import ast
import random
import re
from pathlib import Path
from textwrap import dedent

import pytest

from torchtraceap.codemap.edits import EditError, apply_edits
from torchtraceap.codemap.source import parse_source
from torchtraceap.codemap.tagging import tag_edits

ROOT = Path(__file__).resolve().parents[2]

MODEL = dedent(
    """\
    import torch
    from torch import nn


    class Net(nn.Module):
        def forward(self, x):
            \"\"\"Run.\"\"\"
            # the stem
            y = self.stem(x)  # to half size
            for block in self.blocks:
                y = block(y)
                if y.isnan().any():
                    raise ValueError("nan")
            else:
                y = y + 1
            return self.head(
                y,
            )
    """
)


def tagged(text: str, first: int, last: int | None = None) -> str:
    file = parse_source("m.py", text)
    return apply_edits(text, tag_edits(file, first, first if last is None else last))


def refused(text: str, first: int, last: int | None = None) -> str:
    with pytest.raises(EditError) as error:
        tagged(text, first, last)
    return str(error.value)


def test_the_statement_at_the_cursor() -> None:
    after = tagged(MODEL, 9)
    assert after == MODEL.replace(
        "        y = self.stem(x)  # to half size\n",
        '        with torch.profiler.record_function("forward.stem"):\n            y = self.stem(x)  # to half size\n',
    )


def test_a_selection_of_several_statements_with_their_comments() -> None:
    lines = tagged(MODEL, 8, 15).splitlines()
    assert lines[7] == '        with torch.profiler.record_function("forward.stem"):'
    assert lines[8:16] == ["    " + line for line in MODEL.splitlines()[7:15]]
    assert lines[16:] == MODEL.splitlines()[15:]


@pytest.mark.parametrize(("line", "first"), [(10, 10), (14, 10), (16, 16), (17, 16), (18, 16)])
def test_lines_of_a_compound_or_long_statement_mean_all_of_it(line: int, first: int) -> None:
    assert tagged(MODEL, line) == tagged(MODEL, first)


@pytest.mark.parametrize("line", [11, 13, 15])
def test_the_cursor_in_a_block_means_the_innermost_statement(line: int) -> None:
    after = tagged(MODEL, line).splitlines()
    assert after[line - 1].lstrip().startswith("with torch.profiler.record_function")
    assert after[line] == "    " + MODEL.splitlines()[line - 1]


@pytest.mark.parametrize(("first", "last"), [(9, 11), (10, 12), (11, 16), (17, 18), (12, 15)])
def test_a_selection_that_cuts_a_statement_is_refused(first: int, last: int) -> None:
    assert "cuts a statement" in refused(MODEL, first, last)


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (MODEL, 1, "import"),
        (MODEL, 3, "no statement"),
        (MODEL, 5, "definition"),
        (MODEL, 6, "definition"),
        (MODEL, 7, "docstring"),
        (MODEL, 8, "no statement"),
        ("import torch\nclass A:\n    x = torch.ones(3)\n", 3, "class body"),
        ("import torch\ndef f():\n    global x\n    x = 1\n", 3, "declaration"),
        ("import torch\ndef f():\n    yield torch.ones(1)\n", 3, "yield"),
        ("import torch\nasync def f():\n    await g()\n", 3, "await"),
        ("import torch\ndef f(torch):\n    torch.ones(1)\n", 3, "another thing"),
        ("import torch\ndef f():\n    g()\n    import torch\n", 3, "another thing"),
        ('from torch.profiler import record_function\nwith record_function("a"):\n    f()\n', 2, "already"),
        ("def broken(:\n", 1, "cannot be parsed"),
        ("", 1, "no statement"),
        ("x = 1", 99, "no statement"),
    ],
)
def test_what_is_refused_and_why(text: str, line: int, why: str) -> None:
    assert why in refused(text, line)


@pytest.mark.parametrize(
    ("imports", "called", "added"),
    [
        ("import torch\n", "torch.profiler.record_function", ""),
        ("import torch as t\n", "t.profiler.record_function", ""),
        ("from torch import profiler as p\n", "p.record_function", ""),
        ("from torch.profiler import record_function\n", "record_function", ""),
        ("import os\n", "torch.profiler.record_function", "import torch\n"),
        ('"""Doc."""\n', "torch.profiler.record_function", "import torch\n"),
        ("", "torch.profiler.record_function", "import torch\n"),
    ],
)
def test_the_name_that_the_file_has_for_it_is_used(imports: str, called: str, added: str) -> None:
    text = imports + "\n\ndef f():\n    work()\n"
    after = tagged(text, len(text.splitlines()))
    assert f'    with {called}("f.work"):\n        work()\n' in after
    assert after.count("import") == (imports + added).count("import")
    assert added in after
    ast.parse(after)


def test_names_are_not_given_twice() -> None:
    text = 'import torch\nwith torch.profiler.record_function("f"):\n    f()\nf()\n'
    assert 'record_function("f_2")' in tagged(text, 4)
    assert 'record_function("step.loss")' in tagged("import torch\ndef step():\n    loss *= 2\n", 3)
    assert 'record_function("block")' in tagged("import torch\npass\n", 2)


def test_lines_inside_strings_stay_where_they_are() -> None:
    text = 'import torch\ndef f():\n    log("""a\nb\n  c""", [\n        1,\n    ])\n    g()\n'
    after = tagged(text, 3)
    assert '        log("""a\nb\n  c""", [\n            1,\n        ])\n' in after
    text = 'import torch\ndef f(x):\n    log(f"""a {x}\nb {\nx} c\n""")\n'
    if not _parses(text):  # a line end inside of braces came with Python 3.12
        text = 'import torch\ndef f(x):\n    log(f"""a {x}\nb c\n""")\n'
    assert tagged(text, 3).splitlines()[4:] == text.splitlines()[3:]


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def test_line_ends_tabs_narrow_indents_and_wide_characters_are_kept() -> None:
    text = "import torch\r\ndef f(x):\r\n\tgrößer = '😀'; y = g(größer)\r\n\tif x:\r\n\t\ty = 1  # é\r\n"
    after = tagged(text, 3)
    assert after.splitlines()[2:4] == [
        '\twith torch.profiler.record_function("f.g"):',
        "\t\tgrößer = '😀'; y = g(größer)",
    ]
    assert after.count("\r\n") == after.count("\n") == text.count("\n") + 1
    narrow = "import torch\ndef f(x):\n  g(x)\n"
    assert "\n    g(x)\n" in tagged(narrow, 3)


def test_two_statements_on_one_line_go_together() -> None:
    plain = 'import torch\nwith torch.profiler.record_function("x"):\n    x = 1; y = 2\n'
    assert tagged("import torch\nx = 1; y = 2\n", 2) == plain
    text = "import torch\na = f(); b = g()\nc = 1\n"
    assert tagged(text, 2).splitlines()[1:3] == ['with torch.profiler.record_function("f"):', "    a = f(); b = g()"]


def test_one_line_suites_are_taken_whole() -> None:
    text = "import torch\nif x: y = f()\nz = 1\n"
    assert tagged(text, 2).splitlines()[1:3] == ['with torch.profiler.record_function("f"):', "    if x: y = f()"]


def test_decorated_blocks_try_and_match_keep_their_parts() -> None:
    text = "import torch\ntry:\n    a()\nexcept E:\n    b()\nelse:\n    c()\nfinally:\n    d()\n"
    for line in (3, 5, 7, 9):
        assert tagged(text, line).splitlines()[line - 1].startswith("    with torch.profiler")
    for line in (2, 4, 6, 8):
        assert tagged(text, line).splitlines()[1].startswith("with torch.profiler")


FILES = sorted([*(ROOT / "examples").rglob("*.py"), *(ROOT / "codemap").glob("*.py")])


@pytest.mark.parametrize("seed", range(4))
def test_random_selections_of_real_files_are_refused_or_right(seed: int) -> None:
    chance = random.Random(seed)
    done = 0
    for _ in range(80):
        text = chance.choice(FILES).read_text("utf-8")
        lines = text.splitlines()
        first = chance.randint(1, len(lines))
        last = min(len(lines), first + chance.choice([0, 0, 1, 3, 8]))
        try:
            after = tagged(text, first, last)
        except EditError:
            continue
        done += 1
        assert _plain(_Unwrap().visit(ast.parse(after))) == _plain(ast.parse(text))
        was, now = ([re.sub(r"\s", "", line) for line in t.splitlines()] for t in (text, after))
        added = [line for line in now if line not in was]
        assert len(now) - len(was) in (1, 2)
        assert any("record_function(" in line for line in added)
    assert done >= 5


class _Unwrap(ast.NodeTransformer):
    """Takes out ranges and the import of torch."""

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        called = ast.unparse(node.items[0].context_expr)
        return node.body if called.startswith("torch.profiler.record_function(") else node

    def visit_Import(self, node: ast.Import) -> ast.AST | None:
        return None if [item.name for item in node.names] == ["torch"] else node


def _plain(tree: ast.AST) -> str:
    return ast.dump(_Unwrap().visit(tree))
