"""What hovers write, where no server is needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchtraceap.analyzer.findings import Grain, How, Safety
from torchtraceap.codemap.titles import titled
from torchtraceap.server.features.hover import bar, escaped, explain
from torchtraceap.server.merge import Seen
from torchtraceap.server.state import FolderState

from .reports import finding, place


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("scaled_dot_product_attention", "scaled_dot_product_attention"),
        ("__init__", r"\_\_init\_\_"),
        ("_x and y_", r"\_x and y\_"),
        ("a|b*c`d`", r"a\|b\*c\`d\`"),
        ("<module>\n[1]", r"\<module\> \[1\]"),
    ],
)
def test_markdown_is_left_as_it_is(text: str, markdown: str) -> None:
    assert escaped(text) == markdown


def test_the_bar_is_to_scale() -> None:
    now, after = bar(20_000.0, 5_000.0).splitlines()[1:3]
    assert now.count("█") == 30 and after.count("█") == 22 and after.count("░") == 8
    assert bar(0.0, 5_000.0) == bar(20_000.0, 0.0) == ""


@pytest.mark.parametrize("is_placed", [True, False])
def test_an_unsafe_fix_is_said_once_to_want_checking(is_placed: bool) -> None:
    found = finding("slow", place("a.py", 5, 12, 16), safety=Safety.UNSAFE)
    if is_placed:  # as they come from the analysis
        found = replace(found, fixes=tuple(titled(fix, found) for fix in found.fixes))
    text = explain(Seen(1, found, "t", 1, frozenset({"t"})), FolderState())
    assert "First: Use fixed (about 6.10 ms per step) (check results), 27 % of the step." in text


def test_how_a_place_was_found_and_how_closely_is_said_in_words() -> None:
    where = replace(place("a.py", 5, 12, 16), how=How.MODULE, confidence=0.6)
    line, function = (
        explain(Seen(1, finding("slow", replace(where, grain=grain)), "t", 1, frozenset({"t"})), FolderState())
        for grain in (Grain.LINE, Grain.FUNCTION)
    )
    assert "the line was found by the module's name (60 % sure)." in line
    assert "only the function is known, by the module's name (60 % sure)." in function
