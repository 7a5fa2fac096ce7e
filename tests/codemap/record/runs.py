"""Programs that are recorded in a process of their own, as a user starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from torchtraceap.analyzer.trace.model import Category, Trace
from torchtraceap.analyzer.trace.read import read_trace

QUICK = ("--iterations", "4", "--full", "2", "--warm-up", "1")
STEPS = 30
"""More than `QUICK` needs."""
MODEL = """
import os, sys, time
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.last = nn.Linear(16, 4)

    def forward(self, x):
        hidden = self.first(x)
        hidden = hidden + hidden.mean()
        return self.last(hidden)

net = Net()
"""
TRAIN = (
    MODEL
    + """
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def train(steps, then=None):
    for step in range(steps):
        loss = net(torch.randn(2, 8)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if then is not None:
            then(step)
"""
)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a recorded program did."""

    code: int
    stdout: str
    stderr: str
    traces: tuple[Path, ...]

    @property
    def trace(self) -> Trace:
        """The only trace, read."""
        (path,) = self.traces
        return read_trace(path)


def command(*arguments: object) -> list[str]:
    """The command line, as a list of words."""
    return [sys.executable, "-c", "from torchtraceap.server.cli import main; main()", *map(str, arguments)]


def environment(**variables: str) -> dict[str, str]:
    """Ours, with one thread: the machine may be busy."""
    return {**os.environ, "OMP_NUM_THREADS": "1", **variables}


def run_recorded(folder: Path, words: list[str], *options: str, stdin: str = "", **variables: str) -> Ran:
    """Record a command in `folder`; the traces go to `out` below it."""
    result = subprocess.run(
        command("record", "-o", "out", *(options or QUICK), "--", *words),
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(**variables),
        check=False,
    )
    return Ran(result.returncode, result.stdout, result.stderr, traces_in(folder))


def traces_in(folder: Path) -> tuple[Path, ...]:
    """The traces that a run has left in `folder`."""
    return tuple(sorted((folder / "out").glob("*.pt.trace.json.gz")))


def write_program(folder: Path, text: str, name: str = "program.py") -> Path:
    """Write a program; its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def names(trace: Trace, category: Category) -> list[str]:
    """The names of all events of a category."""
    return [trace.name_of(row) for row in trace.rows(category)]


def step_marks(trace: Trace) -> list[int]:
    """The rows of the marks of steps."""
    rows = trace.rows(Category.USER_ANNOTATION).tolist()
    return [row for row in rows if trace.name_of(row).startswith("ProfilerStep#")]


def names_inside(trace: Trace, mark: int) -> Counter[str]:
    """How often each name is within a range."""
    inside = (trace.ts_ns >= trace.ts_ns[mark]) & (trace.end_ns <= trace.end_ns[mark])
    return Counter(trace.name_of(row) for row in inside.nonzero()[0].tolist())
