from __future__ import annotations

import ast
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types as lsp
from pygls.workspace import PositionCodec

from torchtraceap.analyzer.findings import How, Location
from torchtraceap.server.documents import (
    differences,
    from_units,
    lines_with_ends,
    moved,
    replacement,
    to_units,
    touches,
)  # fmt: skip
from torchtraceap.server.protocol import SourceDocument

ENCODINGS = ("utf-8", "utf-16", "utf-32")


def document(text: str, encoding: str = "utf-16") -> SourceDocument:
    return SourceDocument("file:///a.py", text, 1, "python", position_codec=PositionCodec(encoding))


def partial(a: int, b: int, c: int, d: int, text: str) -> lsp.TextDocumentContentChangePartial:
    return lsp.TextDocumentContentChangePartial(lsp.Range(lsp.Position(a, b), lsp.Position(c, d)), text)


def at(line: int, column: int, end_column: int, end_line: int | None = None) -> Location:
    return Location("a.py", line, column, end_line or line, end_column, "f", How.STACK)


def text_at(text: str, place: Location) -> str:
    lines = lines_with_ends(text)
    start = sum(map(len, lines[: place.line - 1])) + place.column - 1
    end = sum(map(len, lines[: place.end_line - 1])) + place.end_column - 1
    return text[start:end]


@pytest.mark.parametrize(
    "text", ["", "a", "a\n", "a\n\x0c\nb", "a\r\nb\rc\n", "x\u2028y\nz", "s = '\x1c'\nt\x85\n", "a\n\n"]
)
def test_lines_part_where_python_parts_them(text: str) -> None:
    lines = lines_with_ends(text)
    assert "".join(lines) == text
    numbered = text if text.endswith(("\n", "\r")) or not text else text + "\n"
    assert len(lines) == numbered.replace("\r\n", "\n").replace("\r", "\n").count("\n")


def test_an_edit_below_a_form_feed_lands_on_its_line() -> None:
    """`str.splitlines`, which pygls uses, would put it one line too high."""
    text = "import torch\n\x0c\nx = 1\n"
    assert ast.parse(text).body[1].lineno == 3
    doc = document(text)
    doc.apply_change(partial(2, 4, 2, 5, "2"))
    assert doc.source == "import torch\n\x0c\nx = 2\n"


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(line=st.text(max_size=12), column=st.integers(0, 12))
@settings(max_examples=60, deadline=None)
def test_units_go_there_and_back(encoding: str, line: str, column: int) -> None:
    column = min(column, len(line))
    assert from_units(line, to_units(line, column, encoding), encoding) == column


def test_units_of_the_specification_example() -> None:
    line = 'x="😋"'
    assert [to_units(line, 4, encoding) for encoding in ENCODINGS] == [7, 5, 4]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_edits_behind_emoji(encoding: str) -> None:
    doc = document("x = '😋é' + slow\n", encoding)
    start = to_units(doc.source, 11, encoding)
    doc.apply_change(partial(0, start, 0, start + 4, "fast"))
    assert doc.source == "x = '😋é' + fast\n"
    (edit,) = doc.take_edits()
    assert (edit.line, edit.column, edit.end_column) == (1, 12, 16)


@pytest.mark.parametrize(
    ("text", "change", "result"),
    [
        ("a\n", partial(1, 0, 1, 0, "b\n"), "a\nb\n"),
        ("a", partial(1, 0, 1, 0, "\nb"), "a\nb"),
        ("abc", partial(0, 99, 0, 99, "d"), "abcd"),
        ("abc\n", partial(0, 99, 0, 99, "d"), "abcd\n"),
        ("", partial(0, 0, 0, 0, "x"), "x"),
        ("a\r\nb", partial(0, 5, 1, 0, ""), "a\r\nb"[:1] + "b"),
        ("a\nb\n", partial(0, 0, 9, 0, ""), ""),
    ],
)
def test_positions_at_and_past_the_ends(text: str, change: lsp.TextDocumentContentChangePartial, result: str) -> None:
    doc = document(text)
    doc.apply_change(change)
    assert doc.source == result


def test_a_place_moves_with_random_edits_elsewhere() -> None:
    """Whatever is typed or deleted outside it, a place holds the same text."""
    chance = random.Random(7)
    for _ in range(200):
        doc = document("a = 1\nb = [\n  MARK,\n  2]\n\nc = 3\n")
        place = at(3, 3, 7)
        for _ in range(8):
            lines = doc.lines
            row = chance.randrange(len(lines))
            width = len(lines[row].rstrip("\n"))
            low, high = sorted(chance.choices(range(width + 1), k=2))
            if row + 1 == place.line and not (high <= place.column - 1 or low >= place.end_column - 1):
                continue
            doc.apply_change(partial(row, low, row, high, chance.choice(["", "x", "\n", "y\nz", "q\n\n"])))
            for edit in doc.take_edits():
                place = moved(place, edit)
            assert text_at(doc.source, place) == "MARK"


def test_typing_at_its_ends_stays_outside() -> None:
    assert moved(at(1, 5, 9), replacement(1, 5, 1, 5, "ab")) == at(1, 7, 11)
    assert moved(at(1, 5, 9), replacement(1, 9, 1, 9, "ab")) == at(1, 5, 9)


def test_a_deleted_place_comes_back_when_undone() -> None:
    place = at(2, 5, 9)
    gone = moved(place, replacement(2, 1, 3, 1, ""))
    assert (gone.line, gone.column) == (gone.end_line, gone.end_column) == (2, 1)
    back = moved(gone, replacement(2, 1, 2, 1, "    slow()\n"))
    assert (back.line, back.end_line) == (2, 3)


def test_a_rewritten_line_is_the_place() -> None:
    assert moved(at(2, 5, 9), replacement(2, 1, 3, 1, "    fast(x)\n")) == at(2, 1, 1, end_line=3)


def test_a_large_replaced_block_keeps_a_place_where_it_was_in_it() -> None:
    assert moved(at(12, 5, 9), replacement(10, 1, 20, 1, "x\n" * 10)) == at(12, 5, 9)


def test_a_formatter_that_replaces_everything_moves_only_what_it_changed() -> None:
    old = "import os\nx = slow( a )\ny = mark\n"
    new = "import os\n\nx = slow(a)\ny = mark\n"
    for change in (lsp.TextDocumentContentChangeWholeDocument(new), partial(0, 0, 3, 0, new)):
        doc = document(old)
        doc.apply_change(change)
        place = at(3, 5, 9)
        for edit in doc.take_edits():
            place = moved(place, edit)
        assert text_at(new, place) == "mark"


@given(old=st.lists(st.sampled_from("abcd"), max_size=12), new=st.lists(st.sampled_from("abcd"), max_size=12))
@settings(deadline=None)
def test_differences_lead_from_one_text_to_the_other(old: list[str], new: list[str]) -> None:
    """A line that was not changed is at the line that the differences say."""
    before, after = "".join(f"{x}\n" for x in old), "".join(f"{x}\n" for x in new)
    edits = differences(before, after)
    for number, name in enumerate(old, 1):
        place = at(number, 1, 2)
        is_touched = False
        for edit in edits:
            is_touched |= touches(place, edit)
            place = moved(place, edit)
        if not is_touched:
            assert after.splitlines()[place.line - 1] == name


def test_only_edits_of_its_own_lines_touch_a_place() -> None:
    place = at(5, 3, 9, end_line=6)
    assert not touches(place, replacement(5, 1, 5, 1, "new\n"))
    assert not touches(place, replacement(3, 1, 5, 1, ""))
    assert not touches(place, replacement(7, 1, 8, 1, ""))
    assert touches(place, replacement(5, 1, 5, 1, "#"))
    assert touches(place, replacement(6, 2, 6, 3, ""))
    assert touches(place, replacement(4, 1, 6, 1, ""))
