"""Texts that become others in one go: each finding on its own statement after it, or hidden."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types as lsp
from pygls.workspace import PositionCodec

from bench.drift.programs import edited, random_program, render
from bench.drift.states import shown, state_of
from bench.drift.trial import same
from torchtraceap.server.following import MOST_CHARACTERS, follow
from torchtraceap.server.protocol import SourceDocument

from .reports import place

OLD = "import os\n\n\ndef f(x):\n    y = slow( x )\n    return y\n"
NEW = "import os\nimport sys\n\n\ndef g(x):\n    y = slow(\n        x,\n    )\n    return y\n"


@pytest.mark.parametrize("way", ["on disk", "whole document", "one range"])
@given(seed=st.integers(0, 10**9), edits=st.integers(0, 8))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_a_rewritten_text_keeps_each_finding_on_its_statement(way: str, seed: int, edits: int) -> None:
    chance = random.Random(seed)
    program = random_program(chance)
    before, after = render(program, chance), render(edited(program, chance, edits), chance)
    state = state_of(before)
    first = shown(state)
    if way == "on disk":
        state.sync("a.py", after.text)
    else:
        document = SourceDocument("file:///a.py", before.text, 1, "python", position_codec=PositionCodec("utf-16"))
        last = lsp.Position(len(document.lines), 0)
        change = lsp.TextDocumentContentChangePartial(lsp.Range(lsp.Position(0, 0), last), after.text)
        document.apply_change(lsp.TextDocumentContentChangeWholeDocument(after.text) if way[0] == "w" else change)
        state.edit("a.py", document.take_edits(), document.source)
    at_line = {line: number for number, line in after.line_of.items()}
    for name, (line, *_) in shown(state).items():
        assert at_line.get(line) in same(int(name), before, after)
    state.sync("a.py", before.text)
    assert shown(state) == first


def test_a_reformatted_and_renamed_function_is_followed_to_the_character() -> None:
    following = follow("a.py", OLD, NEW)
    assert following is not None
    whole = following.location(place("a.py", 5, 5, 18, "f"))
    assert whole is not None and (whole.line, whole.column, whole.end_line, whole.qualname) == (6, 5, 8, "g")
    shifted = follow("a.py", OLD, "\n" + OLD.replace("def f(x)", "def g(x)"))
    part = place("a.py", 5, 9, 13, "f", confidence=0.5)
    assert shifted is not None and shifted.location(part) == replace(part, line=6, end_line=6, qualname="g")
    assert shifted.location(place("a.py", 2, 1, 1)) is None


def test_what_is_no_python_or_too_large_is_not_followed() -> None:
    assert follow("a.py", OLD, NEW + "def (") is None
    assert follow("a.py", OLD, NEW + "#" * MOST_CHARACTERS) is None
