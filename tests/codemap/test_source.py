"""Which function holds a line: the innermost, in files of any size."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchtraceap.codemap import source
from torchtraceap.codemap.source import parse_source

FILES = sorted(Path(source.__file__).parent.glob("fixes/*.py"))

ODD = """\
x = 1
def f(): return (lambda: [(lambda y: y) for _ in x], lambda: 2)
@first
@second
class A:
    def g(self):
        def h():
            pass

        return h

    y = lambda: (
        1)
z = 2
"""


@pytest.mark.parametrize("text", [ODD, *(file.read_text("utf-8") for file in FILES[::8])])
def test_the_innermost_function_holds_a_line(text: str) -> None:
    file = parse_source("a.py", text)
    for line in range(len(file.lines) + 2):
        holding = [f for f in file.functions if f.first_line <= line <= f.end_line]
        least = min((f.end_line - f.first_line for f in holding), default=None)
        found = file.function_at(line)
        assert found is not None
        assert (found in holding and found.end_line - found.first_line == least) or not holding


def test_a_file_without_a_tree_has_no_function() -> None:
    assert parse_source("a.py", "def f(:").function_at(1) is None
