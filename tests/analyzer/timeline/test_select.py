"""Selections that rules share, against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import TraceBuilder, row_of
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.roots import by_model_call, model_calls
from torchtraceap.analyzer.timeline.select import (
    backward_of,
    count_per_step,
    inside,
    launched_by,
    ops_named,
    outer_op,
    outermost,
    us_per_step,
)
from torchtraceap.analyzer.trace.model import NONE, Category


@st.composite
def nested(draw):
    """A trace of operators nested at random on two threads."""
    b = TraceBuilder(devices=())

    def grow(depth: int) -> None:
        for _ in range(draw(st.integers(0, 3))):
            with b.op(draw(st.sampled_from(["aten::a", "aten::b"])), us=4):
                if depth:
                    grow(depth - 1)
            b.host(1)

    with b.step(0):
        grow(3)
        with b.thread(2):
            grow(2)
    return b.build()


@settings(max_examples=40, deadline=None)
@given(nested())
def test_outermost_and_inside_agree_with_the_call_tree(trace):
    timeline = build_timeline(trace)
    rows = np.flatnonzero((trace.cat == Category.CPU_OP) & np.isin(trace.name, [0, 1, 2]))
    named = [row for row in rows.tolist() if trace.name_of(row) == "aten::a"]
    expected = [row for row in named if not set(timeline.tree.ancestors(row)) & set(named)]
    found = outermost(timeline, np.array(named, dtype=np.int64))
    assert found.tolist() == expected
    owner = inside(timeline, rows, found)
    for row, index in zip(rows.tolist(), owner.tolist(), strict=True):
        holders = [host for host in [row, *timeline.tree.ancestors(row)] if host in expected]
        assert index == (expected.index(holders[0]) if holders else NONE)


def step_with_backward():
    b = TraceBuilder()
    for number in range(3):
        with b.step(number):
            with b.frame("nn.Module: Net_0"), b.op("aten::linear", sequence=number) as forward, b.op("aten::addmm"):
                kernel = b.kernel("ampere_sgemm_128x64_nn", us=30)
            with (
                b.thread(2),
                b.op("autograd::engine::evaluate_function: AddmmBackward0", sequence=number),
                b.op("AddmmBackward0", sequence=number) as backward,
            ):
                b.flow(forward, backward)
                gradient = b.kernel("ampere_sgemm_128x64_nt", us=50)
            b.synchronize()
    trace = b.build()
    return trace, *(row_of(trace, handle) for handle in (forward, kernel, backward, gradient))


def test_device_work_and_backward_go_to_their_forward_operator():
    trace, forward, kernel, backward, gradient = step_with_backward()
    timeline = build_timeline(trace)
    host = np.array([forward])
    assert [rows.tolist() for rows in launched_by(timeline, host)] == [[kernel]]
    (found,) = backward_of(timeline, host)
    assert len(found) == 1
    assert backward in [int(found[0]), *(int(r) for r in timeline.tree.children(int(found[0])))]
    assert outer_op(timeline, int(timeline.launches.runtime[kernel])) == forward
    (call,) = [row for row in model_calls(timeline).tolist() if timeline.steps.of[row] == timeline.steps.of[forward]]
    groups = dict(by_model_call(timeline, np.array([kernel, gradient])))
    assert groups[call].tolist() == [kernel, gradient]


def test_figures_are_medians_over_steady_steps():
    b = TraceBuilder(devices=())
    for number, slow in enumerate((100, 100, 700, 100, 100)):
        with b.step(number):
            b.leaf("aten::a", us=slow)
            b.leaf("aten::rest", us=9000)
    timeline = build_timeline(b.build())
    rows = ops_named(timeline, ("aten::a",))
    assert us_per_step(timeline, rows) == pytest.approx(100)
    assert count_per_step(timeline, rows) == 1


def test_nothing_selected_is_nothing():
    timeline = build_timeline(TraceBuilder(devices=()).build())
    none = np.empty(0, dtype=np.int64)
    assert len(outermost(timeline, none)) == 0
    assert len(inside(timeline, none, none)) == 0
    assert launched_by(timeline, none) == []
    assert us_per_step(timeline, none) == 0
