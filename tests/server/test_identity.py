"""Places in a document under random edits: on the statement that they were put on, or hidden; undo restores them."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types as lsp
from pygls.workspace import PositionCodec

from torchtraceap.analyzer.findings import Hotspot
from torchtraceap.server.documents import to_units
from torchtraceap.server.protocol import SourceDocument
from torchtraceap.server.state import FolderState

from .reports import finding, place, report
from .test_documents import text_at
from .test_state import answer

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


def places_of(text: str):
    """A finding on every marked statement."""
    lines = re.split(r"\r\n|\n", text)
    found = []
    for number, line in enumerate(lines, 1):
        if mark := MARK.search(line):
            last = number
            while lines[last - 1].count("(") and sum(x.count("(") - x.count(")") for x in lines[number - 1 : last]) > 0:
                last += 1
            column = len(line) - len(line.lstrip()) + 1
            end = len(lines[last - 1]) + 1
            found.append(finding(mark[0], place("a.py", number, column, end, "f", end_line=last)))
    return found


def is_closed(text: str) -> bool:
    """Whether no bracket is open at the end."""
    return sum(text.count(c) for c in "([{") <= sum(text.count(c) for c in ")]}")


class Editor:
    """A client with one open document, and the server's side of it."""

    def __init__(self, text: str, encoding: str) -> None:
        self.encoding = encoding
        self.document = SourceDocument("file:///a.py", text, 1, "python", position_codec=PositionCodec(encoding))
        self.state = FolderState()
        content = report(*places_of(text), hotspots=(Hotspot("a.py", 4, "function_0", 5.0, 1.0),))
        self.state.take(answer(content, {"a.py": text}), "t", 1, lambda path: text)
        self.undone: list[tuple[int, str, str]] = []
        self.redone: list[tuple[int, str, str]] = []

    def put(self, offset: int, old: str, new: str) -> None:
        """Replace the text `old` at an offset."""
        self.undone.append((offset, old, new))
        self._change(offset, old, new)

    def undo(self) -> None:
        offset, old, new = self.undone.pop()
        self.redone.append((offset, old, new))
        self._change(offset, new, old)

    def redo(self) -> None:
        offset, old, new = self.redone.pop()
        self.undone.append((offset, old, new))
        self._change(offset, old, new)

    def _change(self, offset: int, old: str, new: str) -> None:
        start, end = self._position(offset), self._position(offset + len(old))
        expected = self.document.source[:offset] + new + self.document.source[offset + len(old) :]
        self.document.apply_change(lsp.TextDocumentContentChangePartial(lsp.Range(start, end), new))
        assert self.document.source == expected
        self.state.edit("a.py", self.document.take_edits(), self.document.source)

    def _position(self, offset: int) -> lsp.Position:
        head = self.document.source[:offset]
        row = len(re.findall(r"\r\n|\n|\r", head))
        line = re.split(r"\r\n|\n|\r", head)[-1]
        return lsp.Position(row, to_units(line, len(line), self.encoding))

    def shown(self) -> dict[str, tuple[int, int, int, int]]:
        """Where each finding is shown."""
        return {
            seen.finding.slug: (where.line, where.column, where.end_line, where.end_column)
            for seen in self.state.findings_in("a.py")
            if (where := seen.finding.location)
        }

    def mistakes(self) -> list[str]:
        """Findings that are shown on another statement than their own."""
        found = []
        for slug, where in self.shown().items():
            last = "".join(self.document.lines[where[2] - 1 : where[2]]).rstrip("\r\n")
            end_column = min(where[3], len(last) + 1)
            own = text_at(self.document.source, place("a.py", where[0], where[1], end_column, end_line=where[2]))
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


def edit(editor: Editor, chance: random.Random) -> None:
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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@given(seed=st.integers(0, 10**9), steps=st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_a_place_shows_its_own_statement_or_nothing_and_undo_restores_it(
    encoding: str, end: str, seed: int, steps: int
) -> None:
    chance = random.Random(seed)
    editor = Editor(program(chance, end), encoding)
    states = [editor.shown()]
    for _ in range(steps):
        before = len(editor.undone)
        edit(editor, chance)
        assert editor.mistakes() == []
        states += [{}] * (len(editor.undone) - before - 1) + [editor.shown()]
        if chance.random() < 0.3:
            back = chance.randint(1, len(editor.undone))
            for _ in range(back):
                editor.undo()
                assert editor.mistakes() == []
            for _ in range(back):
                editor.redo()
            assert editor.shown() == states[-1]
    while editor.undone:
        editor.undo()
        assert editor.mistakes() == []
        if states[len(editor.undone)]:
            assert editor.shown() == states[len(editor.undone)]
    assert len(editor.shown()) == len(states[0]) == 10
