"""Places in a document under random edits: on the statement that they were put on, or hidden; undo restores them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.drift.sessions import Session, edit, program


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@given(seed=st.integers(0, 10**9), steps=st.integers(1, 12))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_a_place_shows_its_own_statement_or_nothing_and_undo_restores_it(
    encoding: str, end: str, seed: int, steps: int
) -> None:
    chance = random.Random(seed)
    editor = Session(program(chance, end), encoding)
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
