"""Real recordings of which the stacks are taken away and the calls of modules are left."""

from __future__ import annotations

import json
import runpy
from collections import Counter
from pathlib import Path

import pytest

from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.model import Category
from torchtraceap.analyzer.trace.read import read_trace
from torchtraceap.codemap.locate import Locator
from torchtraceap.codemap.project import open_workspace

torch = pytest.importorskip("torch")

CHECKPOINTED = """\
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def scores(q, k):
    return (q @ k.transpose(-1, -2)).softmax(-1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qk = nn.Linear(8, 16)

    def forward(self, x):
        q, k = self.qk(x).chunk(2, -1)
        return scores(q, k) @ x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Attention(), Attention()])

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) + x
        return x


net = Net()
for _ in range(3):
    net(torch.randn(2, 4, 8)).sum().backward()
"""


def recorded(source: str, folder: Path) -> Timeline:
    """Run a program under the profiler; of its Python events only the modules' are kept."""
    path, out = folder / "program" / "main.py", folder / "trace.json"
    path.parent.mkdir()
    path.write_text(source)
    kept = {"activities": [torch.profiler.ProfilerActivity.CPU], "with_stack": True, "record_shapes": True}
    with torch.profiler.profile(**kept) as profiler:
        runpy.run_path(str(path))
    profiler.export_chrome_trace(str(out))
    document = json.loads(out.read_text())
    document["traceEvents"] = [
        event
        for event in document["traceEvents"]
        if event.get("cat") != "python_function" or event["name"].startswith("nn.Module: ")
    ]
    out.write_text(json.dumps(document))
    return build_timeline(read_trace(out))


def test_blocks_that_the_backward_pass_computes_again_are_placed_like_the_first_time(tmp_path: Path) -> None:
    timeline = recorded(CHECKPOINTED, tmp_path)
    locator = Locator(timeline, open_workspace(tmp_path / "program"))
    trace = timeline.trace
    assert any(trace.name_of(int(row)) == "nn.Module: Attention_0" for row in trace.rows(Category.PYTHON_FUNCTION))
    found: Counter[tuple[str, int]] = Counter()
    for name in ("aten::linear", "aten::softmax"):
        for row in trace.rows_named([name]).tolist():
            place = locator.locate(row)
            found[name, place.line if place is not None else 0] += 1
    # Two layers in three steps, forwards and again.
    assert found == {("aten::linear", 16): 12, ("aten::softmax", 7): 12}
