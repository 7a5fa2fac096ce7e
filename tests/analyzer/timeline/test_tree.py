"""The call tree against a plain stack walk, and the odd cases of real traces."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import TraceBuilder, row_of
from torchtraceap.analyzer.timeline.tree import build_tree
from torchtraceap.analyzer.trace.model import NONE, Category


def parent_of(trace, tree, handle):
    row = int(tree.parent[row_of(trace, handle)])
    return None if row == NONE else int(trace.file_index[row])


def test_nested_calls_find_their_parents_operators_and_frames():
    b = TraceBuilder()
    with b.step(1) as step, b.frame("model.py(3): forward") as frame, b.annotation("block") as tag:
        with b.op("aten::linear", us=10) as linear, b.op("aten::addmm", us=6) as addmm:
            launch = b.launch(us=4)
        after = b.call("<built-in method relu>")
    trace = b.build()
    tree = build_tree(trace)
    assert parent_of(trace, tree, launch) == addmm
    assert parent_of(trace, tree, addmm) == linear
    assert parent_of(trace, tree, linear) == tag
    assert parent_of(trace, tree, tag) == frame
    assert parent_of(trace, tree, step) is None
    launch_row = row_of(trace, launch)
    assert tree.op[launch_row] == row_of(trace, addmm)
    assert tree.python[launch_row] == row_of(trace, frame)
    assert tree.annotation[launch_row] == row_of(trace, tag)
    assert tree.annotation[row_of(trace, frame)] == NONE, "a step's range is no annotation"
    assert tree.self_ns[row_of(trace, linear)] == 10_000
    assert tree.self_ns[row_of(trace, addmm)] == 6_000
    assert list(tree.children(row_of(trace, tag))) == [row_of(trace, linear), row_of(trace, after)]
    assert tree.ancestors(launch_row) == [row_of(trace, h) for h in (addmm, linear, tag, frame, step)]


def test_threads_are_separate_and_a_childs_overhang_is_not_taken_off_its_parent():
    b = TraceBuilder()
    outer = b.event(Category.PYTHON_FUNCTION, "a.py(1): f", 0, 100)
    late = b.event(Category.PYTHON_FUNCTION, "b.py(1): g", 60, 60)
    rounded = b.event(Category.CPU_OP, "aten::add", 90, 10.0004)
    after = b.event(Category.CPU_OP, "aten::mul", 99.9995, 5)
    other = b.event(Category.CPU_OP, "aten::sub", 70, 5, tid=2)
    trace = b.build()
    tree = build_tree(trace)
    assert parent_of(trace, tree, late) == outer
    assert parent_of(trace, tree, rounded) == late
    assert parent_of(trace, tree, after) == late, "its middle lies after the operator that it seems to overlap"
    assert parent_of(trace, tree, other) is None
    assert tree.self_ns[row_of(trace, outer)] == 60_000


def test_equal_intervals_nest_by_kind_then_by_order_in_the_file():
    b = TraceBuilder()
    launch = b.event(Category.RUNTIME, "cudaLaunchKernel", 10, 5)
    outer = b.event(Category.CPU_OP, "aten::add_", 10, 5)
    inner = b.event(Category.CPU_OP, "aten::add_", 10, 5)
    frame = b.event(Category.PYTHON_FUNCTION, "a.py(1): f", 10, 5)
    trace = b.build()
    tree = build_tree(trace)
    assert [parent_of(trace, tree, h) for h in (launch, inner, outer, frame)] == [inner, outer, frame, None]


def test_frames_of_a_made_up_thread_go_to_the_thread_they_enclose():
    b = TraceBuilder()
    frame = b.event(Category.PYTHON_FUNCTION, "train.py(1): loop", 0, 100, tid=0)
    op = b.event(Category.CPU_OP, "aten::add", 10, 5, tid=77)
    trace = b.build()
    assert parent_of(trace, build_tree(trace), op) == frame


def test_frames_of_a_thread_that_only_waits_stay_alone():
    b = TraceBuilder()
    b.event(Category.PYTHON_FUNCTION, "threading.py(1): wait", 0, 100, tid=0)
    mine = b.event(Category.PYTHON_FUNCTION, "train.py(1): loop", 1, 90, tid=77)
    op = b.event(Category.CPU_OP, "aten::add", 10, 5, tid=77)
    trace = b.build()
    assert parent_of(trace, build_tree(trace), op) == mine


def test_a_range_that_outlives_the_frame_it_opened_in_does_not_take_its_calls():
    b = TraceBuilder()
    loop = b.event(Category.PYTHON_FUNCTION, "train.py(1): loop", 0, 100, python_id=1)
    enter = b.event(Category.PYTHON_FUNCTION, "profiler.py(9): __enter__", 10, 20, python_id=2, python_parent=1)
    block = b.event(Category.USER_ANNOTATION, "block", 15, 60)
    late = b.event(Category.PYTHON_FUNCTION, "profiler.py(12): push", 20, 5, python_id=3, python_parent=2)
    call = b.event(Category.PYTHON_FUNCTION, "<built-in method relu_>", 40, 20, python_id=4, python_parent=1)
    hook = b.event(Category.PYTHON_FUNCTION, "hooks.py(3): pack", 45, 5, python_id=5, python_parent=1)
    trace = b.build()
    tree = build_tree(trace)
    assert parent_of(trace, tree, late) == enter
    assert parent_of(trace, tree, call) == block
    assert parent_of(trace, tree, block) == loop
    assert parent_of(trace, tree, hook) == call, "a call from C names the frame beyond it"


intervals = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30), st.integers(1, 2)), min_size=1, max_size=40)


@settings(max_examples=200, deadline=None)
@given(intervals)
def test_any_intervals_get_the_parents_of_a_stack_walk(events):
    b = TraceBuilder()
    for start, duration, tid in events:
        b.event(Category.CPU_OP, "op", start, duration, tid=tid)
    trace = b.build()
    tree = build_tree(trace)
    for thread in np.unique(trace.thread):
        stack: list[int] = []
        for row in np.flatnonzero(trace.thread == thread):
            middle = trace.ts_ns[row] + trace.dur_ns[row] // 2
            while stack and trace.end_ns[stack[-1]] <= middle:
                stack.pop()
            assert tree.parent[row] == (stack[-1] if stack else NONE)
            stack.append(int(row))


def test_an_empty_trace_has_an_empty_tree():
    tree = build_tree(TraceBuilder().build())
    assert len(tree.parent) == 0
    assert list(tree.child_start) == [0]


@pytest.mark.parametrize("depth", [1, 500])
def test_deep_nesting_is_followed_to_the_root(depth):
    b = TraceBuilder()
    for level in range(depth):
        b.event(Category.PYTHON_FUNCTION, f"f.py({level}): f", level, 2 * (depth - level) + 1)
    launch = b.event(Category.RUNTIME, "cudaLaunchKernel", depth, 0.5)
    trace = b.build()
    tree = build_tree(trace)
    assert len(tree.ancestors(row_of(trace, launch))) == depth
