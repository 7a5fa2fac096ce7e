"""Applying text edits. Pure: whoever calls reads and writes the files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ..analyzer.findings import Fix, TextEdit

_LINE_END = re.compile(r"\r\n|\n|\r")

Span = tuple[int, int]
"""Start and end offset in a text, in code points."""


class EditError(ValueError):
    """Edits that can't be applied: they overlap, or lie outside the text."""


def apply_edits(text: str, edits: Iterable[TextEdit]) -> str:
    """`text` after `edits` of one file, all given in the coordinates of `text`; the same edit given twice counts once.

    New text takes the line ends that `text` uses. Two insertions at one position keep their order.
    Raises EditError when two edits overlap or one lies outside the text.
    """
    starts = _line_starts(text)
    placed = [(_span(edit, starts, len(text)), edit.new_text) for edit in dict.fromkeys(edits)]
    placed.sort(key=lambda item: item[0])
    newline = _newline(text)
    parts: list[str] = []
    done = 0
    for (start, end), new_text in placed:
        if start < done:
            raise EditError("two edits overlap")
        parts += [text[done:start], _LINE_END.sub(newline, new_text)]
        done = end
    return "".join([*parts, text[done:]])


def apply_to_files(texts: Mapping[str, str], edits: Iterable[TextEdit]) -> dict[str, str]:
    """`texts`, by path, after `edits` of any of them. Raises as `apply_edits` does, and KeyError for another file."""
    changed = dict(texts)
    for path, of_file in _by_path(edits).items():
        changed[path] = apply_edits(texts[path], of_file)
    return changed


def compatible(fixes: Iterable[Fix], texts: Mapping[str, str]) -> tuple[tuple[Fix, ...], tuple[Fix, ...]]:
    """Part `fixes` into those that can be applied together, first come first served, and the rest.

    `texts` holds each file's text by path; a fix of a file that is not there is among the rest.
    """
    taken: list[Fix] = []
    left: list[Fix] = []
    for fix in fixes:
        try:
            apply_to_files(texts, [edit for one in (*taken, fix) for edit in one.edits])
        except (EditError, KeyError):
            left.append(fix)
        else:
            taken.append(fix)
    return tuple(taken), tuple(left)


def _by_path(edits: Iterable[TextEdit]) -> dict[str, list[TextEdit]]:
    of_file: dict[str, list[TextEdit]] = {}
    for edit in edits:
        of_file.setdefault(edit.path, []).append(edit)
    return of_file


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in _LINE_END.finditer(text))]


def _span(edit: TextEdit, starts: Sequence[int], length: int) -> Span:
    start = _offset(edit.line, edit.column, starts, length)
    end = _offset(edit.end_line, edit.end_column, starts, length)
    if end < start:
        raise EditError(f"an edit of {edit.path} ends before it starts")
    return start, end


def _offset(line: int, column: int, starts: Sequence[int], length: int) -> int:
    if not 1 <= line <= len(starts) or column < 1:
        raise EditError(f"no line {line}, column {column}")
    offset = starts[line - 1] + column - 1
    line_end = starts[line] if line < len(starts) else length
    if offset > line_end:
        raise EditError(f"no line {line}, column {column}")
    return offset


def _newline(text: str) -> str:
    """The text's own line end: that of its first line."""
    first = _LINE_END.search(text)
    return first.group() if first else "\n"
