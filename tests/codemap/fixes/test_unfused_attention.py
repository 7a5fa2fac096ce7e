"""Whether attention weights are wanted for themselves: then separate passes are no fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchtraceap.codemap.fixes.base import Case, Confirmation, DeviceFacts
from torchtraceap.codemap.fixes.registry import fixers
from torchtraceap.codemap.project import open_workspace

from . import pairs

SLUG = "unfused-attention"
ATTENTION = """\
def attend(q, k, v):
    weights = (q @ k.transpose(-2, -1) * 0.125).softmax(-1)
    return {returned}


def block(q, k, v):
    {call}
    return {result}
"""


def ask(folder: Path, returned: str, call: str, result: str) -> Confirmation | None:
    text = ATTENTION.format(returned=returned, call=call, result=result)
    here = pairs.location("main.py", text, pairs.line_of(text, "softmax"))
    caller = pairs.location("main.py", text, pairs.line_of(text, call))
    case = Case(pairs.finding(SLUG, here), here, (caller,), open_workspace(folder, {"main.py": text}), DeviceFacts())
    return fixers()[SLUG].confirm(case)


@pytest.mark.parametrize(
    ("returned", "call", "result", "is_wanted"),
    [
        ("weights @ v, weights", "out, seen = attend(q, k, v)", "out, seen", True),
        ("weights @ v, weights", "out, _ = attend(q, k, v)", "out", False),
        ("weights @ v, weights", "out = attend(q, k, v)[0]", "out", False),
        ("weights @ v, weights", "both = attend(q, k, v)", "both", True),
        ("weights @ v + weights.mean()", "out = attend(q, k, v)", "out", True),
    ],
)
def test_weights_are_wanted_where_they_are_read(
    tmp_path: Path, returned: str, call: str, result: str, is_wanted: bool
) -> None:
    answer = ask(tmp_path, returned, call, result)
    assert answer is not None
    assert not answer.fixes
    assert answer.is_wanted == is_wanted


def test_attention_of_its_own_gets_its_fix(tmp_path: Path) -> None:
    answer = ask(tmp_path, "weights @ v", "out = attend(q, k, v)", "out")
    assert answer is not None
    assert answer.fixes
    assert not answer.is_wanted
