from __future__ import annotations

import pytest

from torchtraceap.codemap.fixes.calls import edit_call


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()", "f(a=1)"),
        ("f(x)", "f(x, a=1)"),
        ("f(x,)", "f(x, a=1,)"),
        ("f(x, **kw)", "f(x, **kw, a=1)"),
        ("f(a=0)", "f(a=1)"),
        ("f(a = 0, b=2)  ", "f(a = 1, b=2)  "),
        ("f(\n    x,  # é\n)", "f(\n    x,  # é\n    a=1,\n)"),
        ("f(\n    x  # last\n)", "f(\n    x,  # last\n    a=1\n)"),
        ("f(x,\n  y)", "f(x,\n  y,\n  a=1)"),
        ("f(\n    x, y,\n)", "f(\n    x, y, a=1,\n)"),
        ("f(g(\n    1,\n), y)", "f(g(\n    1,\n), y, a=1)"),
    ],
)
def test_an_argument_is_set_in_the_style_of_the_call(before: str, after: str):
    assert edit_call(before, {"a": "1"}) == after


def test_arguments_are_dropped_and_the_list_ends_as_before():
    assert edit_call("f(a, b=1, c=2,)", drop=["c"]) == "f(a, b=1,)"
    assert edit_call("f(a, b)", {"x": "0"}, drop_positions=[1]) == "f(a, x=0)"
    assert edit_call("f(b=1)", drop=["b"]) == "f()"


def test_a_long_line_goes_on_below_the_first_argument():
    call = "Loader(" + ", ".join(f"argument_{n}" for n in range(8)) + ")"
    assert edit_call(call, {"workers": "4"}, column=9).splitlines()[1] == " " * 16 + "workers=4)"
