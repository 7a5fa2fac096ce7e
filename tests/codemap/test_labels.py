"""Event names taken apart, whatever stands in them."""

import pytest

from torchtraceap.codemap.labels import Kind, Label, parse_label


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("src/model.py(14): forward", Label(Kind.FRAME, "forward", "src/model.py", 14)),
        ("C:\\a (1)\\model.py(14): Net.forward", Label(Kind.FRAME, "forward", "C:\\a (1)\\model.py", 14)),
        ("<built-in method permute of Tensor object at 0x7f>", Label(Kind.BUILTIN, "permute", "Tensor")),
        ("<built-in method zeros of type object at 0x7f>", Label(Kind.BUILTIN, "zeros", "type")),
        ("<built-in function linear>", Label(Kind.BUILTIN, "linear")),
        ("nn.Module: Conv2d_3", Label(Kind.MODULE, "Conv2d")),
        ("aten::add", Label(Kind.OPERATOR, "add", "aten")),
        ("x", Label(Kind.OPERATOR, "x")),
    ],
)
def test_kinds(name: str, label: Label) -> None:
    assert parse_label(name) == label


@pytest.mark.parametrize("line", ["9" * 5000, "9" * 10, "\u0663", "\u00b2", "-1"])
def test_a_line_that_no_file_has_names_no_frame(line: str) -> None:
    assert parse_label(f"model.py({line}): forward").kind is Kind.OPERATOR


@pytest.mark.parametrize(
    "name",
    [
        "<built-in method m of " + " object at " * 20_000,
        "<built-in method m of " + " object at >" * 20_000 + "x",
        "a(1): " * 40_000 + "(",
        "nn.Module: " + "_1" * 100_000 + "_",
    ],
)
def test_names_made_to_be_slow_are_not(name: str) -> None:
    parse_label(name)
