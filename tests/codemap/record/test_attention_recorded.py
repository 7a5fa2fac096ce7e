"""From `record --attention` to the findings that read what it measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchtraceap.analyzer.timeline.attention_stats import statistics_of
from torchtraceap.analyzer.trace.read import read_trace

pytest.importorskip("torch")

PROGRAM = """\
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)


class Attention(nn.Module):
    def __init__(self, near):
        super().__init__()
        self.num_heads = 4
        self.qkv, self.proj = nn.Linear(32, 96), nn.Linear(32, 32)
        place = torch.arange(256)
        apart = (place[:, None] - place[None, :]).abs()
        self.register_buffer("mask", torch.where(apart <= near, 0.0, -30.0))

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        x = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask)
        return self.proj(x.transpose(1, 2).flatten(2))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.near, self.far = Attention(8), Attention(256)

    def forward(self, x):
        x = x + self.near(x)
        return x + self.far(x)


torch.manual_seed(0)
model = Net()
with torch.no_grad():
    model.far.proj.weight[:, 8:16] = 0  # head 1 of `far` gives nothing
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
for _ in range(30):
    model(torch.randn(2, 256, 32)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_dead_head_and_a_local_layer_are_found_from_the_recording(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(PROGRAM, "utf-8")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    program = [sys.executable, "-m", "torchtraceap.server.cli"]
    options = ["--attention", "--iterations", "0", "--full", "4", "--warm-up", "2", "-o", "runs", "--name", "net"]
    done = subprocess.run(
        [*program, "record", *options, "--", "net.py"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "runs").glob("net*.json.gz")
    trace = read_trace(path)
    assert trace.recording is not None
    assert not [note for note in trace.recording.notes if "--attention" in note]
    said = {one.layer: one for _, one in statistics_of(trace)}
    assert set(said) == {"near", "far"}
    assert said["far"].importance[1] == pytest.approx(0, abs=1e-6)
    assert min(share for head, share in enumerate(said["far"].importance) if head != 1) > 0.05
    assert said["far"].measure == "gradient"
    reach = {one.window_tokens: one.share for one in said["near"].reach}
    assert reach[8] > 0.99
    report = subprocess.run(
        [*program, "analyze", str(path), "--source", ".", "--format", "json", "--min-saving", "0"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    findings = {one["slug"]: one for one in json.loads(report.stdout)["findings"]}
    pruning, local = findings["prunable-heads"], findings["local-attention-candidate"]
    line = 1 + PROGRAM.splitlines().index("        x = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask)")
    for found in (pruning, local):
        assert (found["location"]["path"], found["location"]["line"]) == ("net.py", line)
    heads = [one for one in pruning["evidence"] if one["id"].startswith("heads-")]
    assert [(one["id"], one["value"]) for one in heads] == [("heads-far", "1 of 4: 0.0 % of the importance")]
    assert [one["id"] for one in local["evidence"] if one["id"].startswith("reach-")] == ["reach-near"]
