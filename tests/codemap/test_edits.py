"""Text edits land where they say, all or none."""

import pytest

from torchtraceap.analyzer.findings import Fix, Safety, TextEdit
from torchtraceap.codemap.edits import EditError, apply_edits, compatible


def edit(line, column, end_line, end_column, new_text, path="a.py"):
    return TextEdit(path, line, column, end_line, end_column, new_text)


def fix(name, *edits):
    return Fix(name, name, Safety.SAFE, edits)


def test_edits_are_given_in_the_coordinates_of_the_old_text():
    text = "import a\nx = f(1)\ny = g(2)\n"
    edits = [edit(3, 5, 3, 9, "h(2, 3)"), edit(1, 1, 1, 1, "import b\n"), edit(2, 7, 2, 8, "one")]
    assert apply_edits(text, edits) == "import b\nimport a\nx = f(one)\ny = h(2, 3)\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_new_text_takes_the_files_line_ends(newline):
    text = newline.join(["a", "b", ""])
    assert apply_edits(text, [edit(2, 1, 2, 2, "c\nd")]) == newline.join(["a", "c", "d", ""])


def test_columns_count_code_points_and_form_feeds_part_no_lines():
    text = "s = '🍃é'; n = 1\n\x0cm = 2\n"
    assert apply_edits(text, [edit(1, 11, 1, 12, "k"), edit(2, 2, 2, 3, "z")]) == "s = '🍃é'; k = 1\n\x0cz = 2\n"


def test_the_same_insertion_twice_counts_once_and_different_ones_keep_their_order():
    twice = edit(1, 1, 1, 1, "import torch\n")
    other = edit(1, 1, 1, 1, "import math\n")
    assert apply_edits("x\n", [twice, other, twice]) == "import torch\nimport math\nx\n"


@pytest.mark.parametrize(
    "edits",
    [
        [edit(1, 1, 1, 4, "a"), edit(1, 3, 1, 5, "b")],
        [edit(1, 1, 1, 4, "a"), edit(1, 2, 1, 2, "b")],
        [edit(9, 1, 9, 1, "a")],
        [edit(1, 99, 1, 99, "a")],
        [edit(1, 4, 1, 2, "a")],
        [edit(0, 1, 1, 1, "a")],
    ],
)
def test_overlaps_and_places_outside_the_text_are_refused(edits):
    with pytest.raises(EditError):
        apply_edits("abcdef\n", edits)


def test_of_fixes_that_overlap_the_first_wins_as_a_whole():
    texts = {"a.py": "one two\n", "b.py": "three\n"}
    first = fix("first", edit(1, 1, 1, 4, "1"))
    second = fix("second", edit(1, 2, 1, 5, "x"), edit(1, 1, 1, 6, "3", path="b.py"))
    third = fix("third", edit(1, 1, 1, 6, "drei", path="b.py"))
    elsewhere = fix("elsewhere", edit(1, 1, 1, 1, "x", path="../c.py"))
    assert compatible([first, second, third, elsewhere], texts) == ((first, third), (second, elsewhere))
