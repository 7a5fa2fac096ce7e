"""What hovers write, where no server is needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchtraceap.analyzer.findings import Evidence, Grain, How, Safety, Verdict
from torchtraceap.codemap.titles import titled
from torchtraceap.server.features.hover import bar, escaped, explain, foreign
from torchtraceap.server.merge import Seen
from torchtraceap.server.state import FolderState

from .reports import finding, place
from .test_explained import DIAGNOSIS


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


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("[a](command:x)", r"\[a\](command:x)"),
        ("![a](http://x)", r"!\[a\](http\://x)"),
        ("see www.x.org", r"see www\.x.org"),
        ("<b>&lt;", r"\<b\>\&lt;"),
        ("# big", r"\# big"),
        ("- one\n- two", r"\- one - two"),
        ("1. one", r"1\. one"),
        ("20240101. one", r"20240101\. one"),
        ("takes 1.5 ms", "takes 1.5 ms"),
    ],
)
def test_what_a_model_writes_shows_as_it_is(text: str, markdown: str) -> None:
    assert foreign(text) == markdown


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


def test_a_diagnosis_shows_with_its_figures_and_its_standing() -> None:
    found = replace(finding("slow", place("a.py", 3, 9, 20)), diagnosis=DIAGNOSIS)
    found = replace(found, evidence=(*found.evidence, Evidence("waiting", "time waited", 9.12, "ms")))
    text = explain(Seen(1, found, "t", 1, frozenset({"t"})), FolderState())
    assert "**Cause**, confirmed: 3 of 3 answers of Tiny, NF4 agree, and the analysis with them:\n\nit is slow" in text
    assert r"- it takes 9.12 ms *(time waited: 9\.12 ms)*" in text
    other = replace(DIAGNOSIS, verdict=Verdict.DISAGREES, pattern="none", claims_dropped=2)
    text = explain(Seen(1, replace(found, diagnosis=other), "t", 1, frozenset({"t"})), FolderState())
    assert "disagrees with the analysis, it sees no fault here" in text
    assert "2 claims are left out" in text
    text = explain(
        Seen(1, replace(found, diagnosis=None), "t", 1, frozenset({"t"}), unexplained="no *model*"), FolderState()
    )
    assert r"Not explained: no \*model\*." in text
