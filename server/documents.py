"""Texts and how edits move the places in them. Knows lines and columns, not findings.

Lines and columns count from 1, columns in code points; an end column is one past the last character. Clients count from
0, columns in UTF-8, UTF-16 or UTF-32 units: `to_units` and `from_units` translate at the edge.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
MAX_DIFF_CELLS = 4_000_000
"""Larger differences are one replaced block: a line diff of them would keep the editor waiting."""


class HasSpan(Protocol):
    """What `moved` can move: a `Location`, or anything else with these four fields."""

    @property
    def line(self) -> int:
        """First line."""
        ...

    @property
    def column(self) -> int:
        """Column of the first character."""
        ...

    @property
    def end_line(self) -> int:
        """Last line."""
        ...

    @property
    def end_column(self) -> int:
        """One past the column of the last character."""
        ...


Spanned = TypeVar("Spanned", bound=HasSpan)


def lines_with_ends(text: str) -> tuple[str, ...]:
    """Lines with their ends, parted at \\n, \\r\\n and \\r only, as Python does (`str.splitlines` parts at more)."""
    return tuple(_LINE.findall(text))


def to_units(line: str, code_points: int, encoding: str) -> int:
    """How many client units the first `code_points` characters of `line` take."""
    head = line[:code_points]
    if encoding == "utf-32" or head.isascii():
        return len(head)
    if encoding == "utf-8":
        return len(head.encode("utf-8", "surrogatepass"))
    return len(head.encode("utf-16-le", "surrogatepass")) // 2


def from_units(line: str, units: int, encoding: str) -> int:
    """How many characters of `line` the first `units` client units are, at most all of them."""
    if encoding == "utf-32" or line.isascii():
        return min(units, len(line))
    if encoding == "utf-8":
        return len(line.encode("utf-8", "surrogatepass")[:units].decode("utf-8", "ignore"))
    return len(line.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "ignore"))


@dataclass(frozen=True, slots=True)
class Replacement:
    """The text from `line`, `column` to `end_line`, `end_column` was replaced by one that ends at the new end."""

    line: int
    column: int
    end_line: int
    end_column: int
    new_end_line: int
    new_end_column: int
    is_inferred: bool = False
    """It was made out from two texts: what became what is a guess."""

    def after(self, line: int, column: int) -> tuple[int, int]:
        """Where a position at or behind the replaced text now is."""
        if line == self.end_line:
            return self.new_end_line, self.new_end_column + column - self.end_column
        return line + self.new_end_line - self.end_line, column


def replacement(line: int, column: int, end_line: int, end_column: int, new_text: str) -> Replacement:
    """The replacement of a range by `new_text`."""
    parts = lines_with_ends(new_text)
    breaks = len(parts) if not parts or parts[-1][-1] in "\r\n" else len(parts) - 1
    tail = len(parts[-1]) if len(parts) > breaks else 0
    new_end_column = tail + 1 if breaks else column + tail
    return Replacement(line, column, end_line, end_column, line + breaks, new_end_column)


def line_blocks(old: str, new: str) -> tuple[tuple[int, int, int, int], ...]:
    """What differs: lines `a` up to `b` of `old` became lines `c` up to `d` of `new`; (a, b, c, d) from 0, in order."""
    before, after = lines_with_ends(old), lines_with_ends(new)
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    olds, news = before[head : len(before) - tail], after[head : len(after) - tail]
    if not olds and not news:
        return ()
    if len(olds) * len(news) > MAX_DIFF_CELLS:
        return ((head, head + len(olds), head, head + len(news)),)
    return tuple(
        (head + a, head + b, head + c, head + d)
        for kind, a, b, c, d in difflib.SequenceMatcher(None, olds, news).get_opcodes()
        if kind != "equal"
    )


def differences(old: str, new: str) -> tuple[Replacement, ...]:
    """Line-wise replacements that turn `old` into `new`, to be applied in order."""
    # A block's new line number is its place: everything above it has been replaced by the time it is applied.
    return tuple(
        Replacement(c + 1, 1, c + 1 + b - a, 1, c + 1 + d - c, 1, True) for a, b, c, d in line_blocks(old, new)
    )


def moved(place: Spanned, edit: Replacement) -> Spanned:
    """`place` after `edit`. Text typed at either end stays outside.

    A place whose text was deleted is left empty, and grows again when text is put there: undoing brings it back.
    """
    start, end = (place.line, place.column), (place.end_line, place.end_column)
    edit_start, edit_end = (edit.line, edit.column), (edit.end_line, edit.end_column)
    new_end = (edit.new_end_line, edit.new_end_column)
    if start == end == edit_start == edit_end:
        end = new_end
    elif end <= edit_start:
        return place
    elif edit_start <= start and end <= edit_end and edit_start != edit_end:
        start, end = _inside(place, edit)
    else:
        start = edit.after(*start) if start >= edit_end else new_end if start > edit_start else start
        end = edit.after(*end) if end >= edit_end else edit_start
    return replace(place, line=start[0], column=start[1], end_line=end[0], end_column=end[1])  # pyright: ignore[reportArgumentType, reportCallIssue]


def _inside(place: HasSpan, edit: Replacement) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where a wholly replaced place is: the new text if just its lines were replaced, else as far down as it was."""
    new_end = (edit.new_end_line, edit.new_end_column)
    if edit.line >= place.line and (edit.end_line, edit.end_column) <= (place.end_line + 1, 1):
        return (edit.line, edit.column), new_end
    start, end = (place.line, place.column), (place.end_line, place.end_column)
    return min(start, new_end), min(end, new_end)


def touches(place: HasSpan, edit: Replacement) -> bool:
    """Whether `edit` changed a line of `place`. Whole lines inserted or deleted above or below do not."""
    whole_lines = edit.end_column == 1 and edit.new_end_column == 1
    if edit.end_line < place.line or (edit.end_line == place.line and whole_lines and edit.column == 1):
        return False
    return edit.line <= place.end_line
