from __future__ import annotations

import ast
import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest

from torchtraceap.analyzer.findings import Safety

from . import pairs

_INPUTS = pairs.inputs()
_NAMES = [f"{path.parent.name}/{path.name.removesuffix('.in.py')}" for path in _INPUTS]
pytestmark = pytest.mark.filterwarnings("ignore")
each = pytest.mark.parametrize("path", _INPUTS, ids=_NAMES)


@each
def test_a_fix_gives_the_expected_text(path: Path):
    pair = pairs.load(path)
    answer = pairs.confirm(pair)
    if pair.is_control:
        assert answer is None or not answer.fixes
        assert (answer is not None) == (pair.one("confirmed", "yes") == "yes")
        return
    assert answer is not None
    assert len(answer.fixes) == 1
    assert pairs.fixed(pair.before, answer.fixes[0]) == pair.after
    assert answer.fixes[0].safety == Safety(pair.one("fix", "safe"))
    assert answer.location.line == pairs.line_of(pair.before, pair.one("line") or pair.one("at"))


@each
def test_fixed_code_parses_and_is_not_fixed_again(path: Path):
    pair = pairs.load(path)
    if pair.after is None:
        return
    ast.parse(pair.after)
    answer = pairs.confirm(pair)
    assert answer is not None
    # Where the trace pointed first, and where the finding was shown: an editor asks again at either.
    shown = min(answer.location.line, len(pair.after.splitlines()))
    for fragment in (pair.one("at"), pair.one("line")):
        if fragment and pairs.holds(pair.after, [fragment, *pair.said.get("caller", [])]):
            again = pairs.confirm(replace(pair, said={**pair.said, "at": [fragment]}), pair.after)
            assert again is None or not again.fixes, fragment
    alone = replace(pair, said={name: said for name, said in pair.said.items() if name != "caller"})
    again = pairs.confirm(alone, pair.after, pairs.location("main.py", pair.after, shown))
    assert again is None


@each
def test_a_safe_fix_keeps_the_results(path: Path, monkeypatch: pytest.MonkeyPatch):
    pair = pairs.load(path)
    if pair.after is None or pair.one("fix", "safe") != "safe":
        return
    torch = pytest.importorskip("torch")
    before, after = (_run(text, path, monkeypatch) for text in (pair.before, pair.after))
    torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-5, equal_nan=True)


def _run(text: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    module = types.ModuleType("fixture")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, "fixture", module)
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module.run()
