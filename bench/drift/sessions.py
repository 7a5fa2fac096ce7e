"""A client that edits a document at random, and the server's findings in it.

Every statement has a mark that it is known by. Edits insert, delete and replace characters, words and lines, cut, copy
and paste, undo and redo, in each of the protocol's units and with both line ends.
"""

from __future__ import annotations

import random
import re

from lsprotocol import types as lsp
from pygls.workspace import PositionCodec

from torchtraceap.analyzer.findings import Hotspot, Location
from torchtraceap.server.documents import to_units
from torchtraceap.server.protocol import SourceDocument

from .states import PATH, Span, place_at, shown, state_with

MARK = re.compile(r"\bmk\d\dz\b")
OTHER = re.compile(r"(?m)^\s*(mk\d\dz)\b")
PIECES = (
    "x",
    "",
    "\n",
    "    ",
    "# 😋 note\n",
    "\n\n",
    "é = '😋😋'\n    ",
    "(",
    ")",
    "    y = other(z)\n",
    ", scale=2",
    "'",
    "\t",
)


def program(chance: random.Random, end: str) -> str:
    """Statements that are known by a mark each, some of several lines."""
    lines = ["import torch", ""]
    for number in range(10):
        if number % 4 == 0:
            lines += ["", f"def function_{number}(x):"]
        text = chance.choice(
            (
                f"mk{number:02}z = torch.relu(x, '😋')",
                f"mk{number:02}z = self.conv{number}(\n        x, stride={number}\n    )",
                f"if mk{number:02}z(x): x = 'é'",
                f"mk{number:02}z(x[{number}], y)",
            )
        )
        lines += ("    " + text).split("\n")
    return end.join(lines) + end


def places_of(text: str) -> dict[str, Location]:
    """The place of every marked statement."""
    lines = re.split(r"\r\n|\n", text)
    found: dict[str, Location] = {}
    for number, line in enumerate(lines, 1):
        if mark := MARK.search(line):
            last = number
            while lines[last - 1].count("(") and sum(x.count("(") - x.count(")") for x in lines[number - 1 : last]) > 0:
                last += 1
            column = len(line) - len(line.lstrip()) + 1
            end = len(lines[last - 1]) + 1
            found[mark[0]] = place_at(number, column, last, end)
    return found


def is_closed(text: str) -> bool:
    """Whether no bracket is open at the end."""
    return sum(text.count(c) for c in "([{") <= sum(text.count(c) for c in ")]}")


class Session:
    """A client with one open document, and the server's side of it."""

    def __init__(self, text: str, encoding: str) -> None:
        self.encoding = encoding
        self.document = SourceDocument("file:///a.py", text, 1, "python", position_codec=PositionCodec(encoding))
        self.state = state_with(text, places_of(text), [Hotspot(PATH, 4, "function_0", 5.0, 1.0)])
        self.undone: list[tuple[int, str, str]] = []
        self.redone: list[tuple[int, str, str]] = []

    def put(self, offset: int, old: str, new: str) -> None:
        """Replace the text `old` at an offset."""
        self.undone.append((offset, old, new))
        self._change(offset, old, new)

    def undo(self) -> None:
        """Take the last change back."""
        offset, old, new = self.undone.pop()
        self.redone.append((offset, old, new))
        self._change(offset, new, old)

    def redo(self) -> None:
        """Make the change again that was taken back last."""
        offset, old, new = self.redone.pop()
        self.undone.append((offset, old, new))
        self._change(offset, old, new)

    def _change(self, offset: int, old: str, new: str) -> None:
        start, end = self._position(offset), self._position(offset + len(old))
        expected = self.document.source[:offset] + new + self.document.source[offset + len(old) :]
        self.document.apply_change(lsp.TextDocumentContentChangePartial(lsp.Range(start, end), new))
        assert self.document.source == expected
        self.state.edit(PATH, self.document.take_edits(), self.document.source)

    def _position(self, offset: int) -> lsp.Position:
        head = self.document.source[:offset]
        row = len(re.findall(r"\r\n|\n|\r", head))
        line = re.split(r"\r\n|\n|\r", head)[-1]
        return lsp.Position(row, to_units(line, len(line), self.encoding))

    def shown(self) -> dict[str, Span]:
        """Where each finding is shown."""
        return shown(self.state)

    def mistakes(self) -> list[str]:
        """Findings that are shown on another statement than their own."""
        found = []
        for slug, where in self.shown().items():
            own = _text_at(self.document.lines, where)
            own_lines = "".join(self.document.lines[where[0] - 1 : where[2]])
            marks = MARK.findall(own)
            others = [m[1] for m in OTHER.finditer(own) if m[1] != slug and is_closed(own[: m.start()])]
            if (
                (marks and marks[0] != slug)
                or others
                or (not marks and slug in MARK.findall(self.document.source) and slug not in own_lines)
            ):
                found.append(f"{slug} on {own!r}")
        return found


def spans(chance: random.Random, text: str) -> tuple[int, int]:
    """A random range: some characters, a word, whole lines; never between \\r and \\n."""
    starts = [m.start() for m in re.finditer(r"(?m)^", text)]
    kind = chance.random()
    if kind < 0.35:
        first = chance.randrange(len(starts))
        last = min(first + chance.choice((0, 1, 1, 1, 2, 3)), len(starts) - 1)
        start, end = starts[first], starts[last]
    elif kind < 0.7:
        start = chance.randint(0, len(text))
        end = min(start + chance.choice((0, 0, 1, 3, 20, 60)), len(text))
    else:
        words = list(re.finditer(r"\w+", text))
        word = chance.choice(words) if words else None
        start, end = word.span() if word else (0, 0)
    start -= text[start - 1 : start + 1] == "\r\n"
    end += text[end - 1 : end + 1] == "\r\n"
    return start, max(start, end)


def edit(editor: Session, chance: random.Random) -> None:
    """Make a random change, or two: cut and paste."""
    text = editor.document.source
    start, end = spans(chance, text)
    piece = chance.choice(PIECES)
    if chance.random() < 0.3:  # paste what stands elsewhere
        a, b = spans(chance, text)
        piece = text[a:b]
    if chance.random() < 0.3:  # cut and paste
        editor.put(start, text[start:end], "")
        at, _ = spans(chance, editor.document.source)
        editor.put(at, "", text[start:end])
        return
    editor.put(start, text[start:end], piece)


def _text_at(lines: tuple[str, ...], where: Span) -> str:
    """The text of a place; an end past that of its line counts as that."""
    line, column, end_line, end_column = where
    own = list(lines[line - 1 : end_line])
    if len(own) > end_line - line:
        own[-1] = own[-1].rstrip("\r\n")[: end_column - 1]
    if own:
        own[0] = own[0][column - 1 :]
    return "".join(own)
