"""What hovers write, where no server is needed."""

from __future__ import annotations

import pytest

from torchtraceap.server.features.hover import bar, escaped


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
