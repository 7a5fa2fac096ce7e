"""What encloses events narrows down where they come from: the modules being called and the ranges being open."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.codemap.locate import Locator
from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.sequence.within import NOWHERE, UNKNOWN, Enclosures, Mismatch, Within

from ...builders import TraceBuilder, row_of

TWINS = """\
import torch
from torch import nn
from torch.profiler import record_function


class First(nn.Module):
    def forward(self, x):
        return x * 2


class Second(nn.Module):
    def forward(self, x):
        return x * 3


def main(flags):
    first, second = First(), Second()
    for flag in flags:
        x = torch.rand(4)
        if flag == 1:
            x = first(x)
        elif flag == 2:
            x = second(x)
        elif flag == 3:
            with record_function("cubes"):
                x = x * 4
        else:
            x = x * 5


if __name__ == "__main__":
    main([1, 2, 3, 4])
"""


@pytest.mark.parametrize(("opened", "line"), [("nn.Module: First_0", 8), ("nn.Module: Second_0", 13), ("cubes", 26)])
def test_operators_alike_are_told_apart_by_what_they_ran_in(tmp_path: Path, opened: str, line: int) -> None:
    (tmp_path / "train.py").write_text(TWINS)
    b, handles = TraceBuilder(devices=()), []
    for number in range(3):
        with b.step(number):
            b.leaf("aten::rand")
            with b.annotation(opened) if opened == "cubes" else b.frame(opened):
                handles.append(b.leaf("aten::mul"))
    trace = b.build()
    place = Locator(build_timeline(trace), open_workspace(tmp_path)).locate(row_of(trace, handles[1]))
    assert place is not None and place.line == line


def test_what_the_trace_does_not_record_costs_nothing() -> None:
    b = TraceBuilder(devices=())
    with b.step(0), b.annotation("Optimizer.step#SGD.step"):
        handle = b.leaf("aten::add_")
    trace = b.build()
    within = Enclosures(build_timeline(trace)).of(row_of(trace, handle))
    assert within == Within(None, None)
    nodes = [Within(("Net",), ("a",)), Within()]
    assert Mismatch(nodes, [False, False]).costs(within).tolist() == [0.0, 0.0]


def test_modules_below_unseen_code_fit_it_and_others_do_not() -> None:
    nodes = [Within(("Net",)), Within(("Net", "Encoder")), Within(("Net", "Linear")), Within()]
    costs = Mismatch(nodes, [False, True, False, False]).costs(Within(("Net", "Encoder", "Hidden", "Linear")))
    assert costs[1] == 0.0 and all(cost > 0 for cost in costs[[0, 2, 3]])


def test_a_block_computed_again_lacks_the_modules_around_it() -> None:
    nodes = [Within(("Net", "Block", "Linear")), Within(("Net", "Head", "Linear")), Within(("Net", "Block")), Within()]
    costs = Mismatch(nodes, [False] * 4).costs(Within(("Block", "Linear")))
    assert costs[0] < min(costs[1:])
    outside = Mismatch(nodes, [False] * 4).costs(Within())
    assert outside[3] == 0.0 and min(outside[:3]) > 1.0


def test_ranges_that_the_program_never_names_do_not_count() -> None:
    nodes = [Within((), ("forward",)), Within()]
    costs = Mismatch(nodes, [False, False]).costs(Within((), ("by a library", "forward")))
    assert costs[0] == 0.0 and costs[1] > 0


def test_what_nests_without_end_is_told_apart_to_a_depth():
    within = NOWHERE
    for number in range(5000):
        within = within.in_range(f"r{number}").in_module("Block")
    assert within.ranges is not None and within.modules is not None
    assert len(within.ranges) == len(within.modules) == 200
    assert within.ranges[0] == "r0"
    assert UNKNOWN.in_range("r") == UNKNOWN
