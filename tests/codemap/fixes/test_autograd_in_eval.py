"""Looking for forward passes without a graph's use where the trace names no line."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchtraceap.codemap.fixes.base import DeviceFacts
from torchtraceap.codemap.fixes.registry import fixers
from torchtraceap.codemap.project import open_workspace

from . import pairs

SLUG = "autograd-in-eval"
TRAINS = """
def train_step(model, batch, opt):
    preds = model(batch)
    preds.sum().backward()
    opt.step()
"""
VALIDATES = """
def validate(model, batches):
    total = 0.0
    for batch in batches:
        total += model(batch).mean().item()
    return total
"""
BUILDS = """
def predict(path):
    return load_model(path)
"""


@pytest.mark.parametrize(("text", "lines"), [(TRAINS, []), (VALIDATES, [5]), (BUILDS, []), (TRAINS + VALIDATES, [10])])
def test_only_passes_that_evaluate_are_found(tmp_path: Path, text: str, lines: list[int]) -> None:
    workspace = open_workspace(tmp_path, {"main.py": text})
    search = fixers()[SLUG].search
    assert search is not None
    found = search(pairs.finding(SLUG), workspace, DeviceFacts(is_cpu=True))
    assert [answer.location.line for answer in found] == lines
