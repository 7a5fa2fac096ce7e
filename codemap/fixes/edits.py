"""Replacements in one file's text, and what an editor wants of them: small `TextEdit`s."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...analyzer.findings import TextEdit
from .outline import Outline


@dataclass(frozen=True, slots=True)
class Patch:
    """Replacements gathered for one file. They must not overlap; insertions at one offset keep their order."""

    outline: Outline
    _parts: list[tuple[int, int, str]] = field(default_factory=list)

    def replace(self, node: ast.expr | ast.stmt, text: str) -> None:
        """Put `text` in place of a node."""
        start, end = self.outline.span(node)
        self.replace_span(start, end, text)

    def replace_span(self, start: int, end: int, text: str) -> None:
        """Put `text` in place of the characters from `start` up to `end`. Its "\\n" become the file's own line ends."""
        text = text.replace("\r\n", "\n").replace("\n", self.outline.newline)
        before = self.outline.text[start:end]
        if before == text:
            return
        head = _common(before, text)
        tail = _common(before[head:][::-1], text[head:][::-1])
        self._parts.append((start + head, end - tail, text[head : len(text) - tail]))

    def insert(self, offset: int, text: str) -> None:
        """Put `text` before the character at `offset`; a second time changes nothing."""
        if (offset, offset, text) not in self._parts:
            self._parts.append((offset, offset, text))

    def delete(self, statements: Sequence[ast.stmt]) -> None:
        """Take statements out with their lines, end-of-line comments, and blank lines that would be left doubled."""
        gone = {line for one in statements for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)}
        lines, starts = self.outline.file.lines, [*self.outline.line_starts, len(self.outline.text)]
        for line in sorted(gone):
            self._parts.append((starts[line - 1], starts[line], ""))
            before = line - 1
            while before in gone:
                before -= 1
            opens = not before or not lines[before - 1].strip() or lines[before - 1].rstrip().endswith(":")
            after = line + 1
            while opens and after not in gone and after <= len(lines) and not lines[after - 1].strip():
                self._parts.append((starts[after - 1], starts[after], ""))
                gone.add(after)
                after += 1

    def insert_line_after(self, statement: ast.stmt, line: str) -> None:
        """Add a line of its own behind a statement (and its end-of-line comment), indented as it is."""
        starts = self.outline.line_starts
        last = statement.end_lineno or statement.lineno
        text = self.outline.indentation(statement) + line
        if last < len(starts):
            self.insert(starts[last], text + self.outline.newline)
        else:
            end = len(self.outline.text)
            self.insert(end, self.outline.newline + text)

    def edits(self) -> tuple[TextEdit, ...]:
        """The replacements in the order of the text, neighbours joined."""
        merged: list[tuple[int, int, str]] = []
        for start, end, text in dict.fromkeys(sorted(self._parts, key=lambda part: part[:2])):
            if merged and merged[-1][1] == start:
                merged[-1] = (merged[-1][0], end, merged[-1][2] + text)
            else:
                merged.append((start, end, text))
        return tuple(self._edit(*part) for part in merged)

    def _edit(self, start: int, end: int, text: str) -> TextEdit:
        return TextEdit(self.outline.path, *self.outline.position(start), *self.outline.position(end), text)


def _common(first: str, second: str) -> int:
    """Length of the common beginning, never parting a word: an edit should read as whole names."""
    length = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        length += 1
    while (
        length and first[length - 1].isalnum() and (first[length : length + 1] + second[length : length + 1]).isalnum()
    ):
        length -= 1
    return length
