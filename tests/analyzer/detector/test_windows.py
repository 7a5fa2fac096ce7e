"""Windows tile the steps, hold every event once, and stand for the same part of the program in every step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import TraceBuilder, row_of
from tests.shared import shared_timeline, shared_traces
from torchtraceap.analyzer.detector.windows import MOST_STEPS, MOST_WINDOWS, chosen_steps, cut, members, moments
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.model import Phase
from torchtraceap.analyzer.timeline.tree import is_step_mark
from torchtraceap.analyzer.trace.model import DEVICE_CATEGORIES, HOST_CATEGORIES, NONE, Category


def check(timeline):
    """What holds of the windows of any trace."""
    trace, steps = timeline.trace, timeline.steps
    windows = cut(timeline)
    chosen = chosen_steps(timeline)
    is_counted = np.isin(trace.cat, [*HOST_CATEGORIES, *DEVICE_CATEGORIES]) & np.isin(steps.of, chosen)
    holds_work = np.isin(chosen, steps.of[is_counted & ~is_step_mark(trace)])
    assert np.array_equal(np.unique(windows.step), chosen[holds_work])
    if not len(windows):
        assert np.all(windows.of == NONE)
        return windows
    is_counted &= np.isin(steps.of, windows.step)
    assert np.all((windows.of != NONE) == is_counted)
    assert np.all(windows.end_ns > windows.start_ns)
    assert np.all(np.diff(windows.step) >= 0)
    for step in np.unique(windows.step):
        mine = windows.step == step
        assert mine.sum() <= MOST_WINDOWS
        assert windows.start_ns[mine][0] == steps.start_ns[step]
        assert windows.end_ns[mine][-1] == steps.end_ns[step]
        assert np.array_equal(windows.start_ns[mine][1:], windows.end_ns[mine][:-1])
    rows = np.flatnonzero(windows.of != NONE)
    of, moment = windows.of[rows], moments(timeline)[rows]
    assert np.all((windows.start_ns[of] <= moment) & (moment < windows.end_ns[of]))
    assert np.all(windows.step[of] == steps.of[rows])
    assert np.array_equal(np.unique(of), np.arange(len(windows)))
    assert np.array_equal(np.unique(windows.region), np.arange(len(windows.regions)))
    assert len(set(windows.regions)) == len(windows.regions)
    return windows


@pytest.mark.parametrize("name", shared_traces())
def test_windows_of_recorded_traces(name):
    timeline = shared_timeline(name)
    windows = check(timeline)
    launched = timeline.device_rows[timeline.launches.runtime[timeline.device_rows] != NONE]
    launched = launched[windows.of[launched] != NONE]
    call = timeline.launches.runtime[launched]
    alone = np.diff(timeline.launches.device_start)[call] == 1
    assert np.array_equal(windows.of[launched[alone]], windows.of[call[alone]])


@pytest.mark.parametrize("name", shared_traces())
def test_no_window_of_another_phase_holds_the_backward_pass(name):
    timeline = shared_timeline(name)
    windows = cut(timeline)
    trace = timeline.trace
    is_node = np.array([name.startswith("autograd::engine::evaluate_function") for name in trace.names])
    nodes = np.flatnonzero(is_node[trace.name] & (windows.of != NONE))
    held = {windows.regions[region].partition(":")[0] for region in windows.region[windows.of[nodes]]}
    assert held <= {"backward"}


def training(steps, blocks=4, stacks=True, extra_in=()):
    """A training run on a device whose backward pass runs on a thread of its own."""
    b = TraceBuilder()
    for number in range(steps):
        with b.step(number):
            with b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
                b.leaf("aten::stack", us=100)
            sequences = []
            for block in range(blocks):
                with b.frame(f"nn.Module: Block_{block}") if stacks else b.annotation(f"block {block}"):
                    for name in ("aten::linear", "aten::relu"):
                        sequence = 100 * number + len(sequences)
                        b.leaf(name, kernel=f"{name} kernel", kernel_us=50, sequence=sequence)
                        sequences.append((name, sequence))
            if number in extra_in:
                b.leaf("aten::item", us=300)
            with b.thread(2):
                for name, sequence in reversed(sequences):
                    with b.op(f"autograd::engine::evaluate_function: {name}Backward0", sequence=sequence):
                        b.leaf(f"{name}_backward", kernel=f"{name} backward kernel", kernel_us=90)
            with b.annotation("Optimizer.step#SGD.step"):
                for _ in range(6):
                    b.leaf("aten::add_", kernel="add", kernel_us=10)
    return b


@pytest.mark.parametrize("stacks", [True, False])
def test_the_backward_pass_of_a_region_follows_its_forward_pass(stacks):
    timeline = build_timeline(training(3, stacks=stacks).build())
    windows = check(timeline)
    names = [windows.regions[region] for region in windows.region[windows.step == 1]]
    forward = [name.removeprefix("forward: ") for name in names if name.startswith("forward")]
    backward = [name.removeprefix("backward: ") for name in names if name.startswith("backward")]
    assert len(forward) >= 4
    assert list(dict.fromkeys(n.partition(" #")[0] for n in backward)) == forward[::-1]
    order = [name.partition(":")[0] for name in names]
    assert list(dict.fromkeys(order)) == ["data", "forward", "backward", "optimizer"]
    assert order == sorted(order, key=["data", "forward", "backward", "optimizer"].index)


def test_regions_are_the_same_in_every_step():
    windows = check(build_timeline(training(5).build()))
    regions = [tuple(windows.region[windows.step == step]) for step in np.unique(windows.step)]
    assert len(set(regions)) == 1


def test_what_one_step_has_more_does_not_move_the_others():
    plain = check(build_timeline(training(5).build()))
    one_more = check(build_timeline(training(5, extra_in={2}).build()))
    in_step = [tuple(one_more.regions[r] for r in one_more.region[one_more.step == step]) for step in (1, 3)]
    assert in_step[0] == in_step[1] == tuple(plain.regions[r] for r in plain.region[plain.step == 1])


def test_of_many_steps_some_are_taken_evenly():
    timeline = build_timeline(training(40).build())
    windows = check(timeline)
    taken = np.unique(windows.step)
    steady = timeline.steps.steady
    assert len(taken) == MOST_STEPS
    assert (taken[0], taken[-1]) == (steady[0], steady[-1])
    assert np.ptp(np.diff(taken)) <= 1


def test_a_large_module_is_opened_and_a_small_one_is_not():
    b = TraceBuilder()
    for number in range(2):
        with b.step(number), b.frame("nn.Module: Net_0"):
            with b.frame("nn.Module: Large_0"):
                for layer in range(10):
                    with b.frame(f"nn.Module: Layer_{layer}"):
                        b.leaf("aten::conv2d", us=100)
            for small in range(30):
                with b.frame(f"nn.Module: Small_{small}"):
                    b.leaf("aten::relu", us=1)
    windows = check(build_timeline(b.build()))
    assert {f"forward: Layer_{layer}" for layer in range(10)} <= set(windows.regions)
    assert "forward: Small_0 … Small_29" in windows.regions


def test_kernels_of_a_replayed_graph_are_parted():
    b, kernels = TraceBuilder(), []
    for number in range(3):
        with b.step(number):
            call = b.launch("cudaGraphLaunch", us=50)
            kernels.extend(b.device_work(Category.KERNEL, f"kernel {i}", us=100, launched=call) for i in range(40))
            b.synchronize()
    trace = b.build()
    windows = check(build_timeline(trace))
    of = windows.of[[row_of(trace, kernel) for kernel in kernels[-40:]]]
    assert len(set(of.tolist())) >= 8
    assert np.all(np.diff(of) >= 0)


def test_a_trace_of_kernels_alone_is_cut_along_them():
    b = TraceBuilder()
    for _ in range(MOST_STEPS):
        for kernel in range(30):
            b.device_work(Category.KERNEL, f"kernel {kernel}", us=20, launched=None)
    timeline = build_timeline(b.build())
    windows = check(timeline)
    assert len(np.unique(windows.step)) == len(timeline.steps.steady)
    assert len(windows) >= 8 * len(timeline.steps.steady)
    assert np.all(windows.of[timeline.device_rows] != NONE)


def test_nothing_is_cut_where_there_is_nothing():
    windows = check(build_timeline(TraceBuilder().build()))
    assert len(windows) == 0
    assert windows.regions == ()


def test_members_come_window_by_window():
    timeline = build_timeline(training(3).build())
    windows = cut(timeline)
    held = members(windows)
    for index in range(len(windows)):
        rows = held.rows[held.start[index] : held.start[index + 1]]
        assert np.array_equal(rows, np.flatnonzero(windows.of == index))
    ops = members(windows, timeline.trace.cat == Category.CPU_OP)
    assert np.array_equal(np.sort(ops.rows), np.flatnonzero((windows.of != NONE) & (timeline.trace.cat == 1)))
    assert len(ops.start) == len(windows) + 1


def test_many_turns_between_phases_keep_to_the_cap():
    b = TraceBuilder()
    for number in range(2):
        with b.step(number):
            for micro in range(200):
                with b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
                    b.leaf("aten::stack", us=30)
                with b.frame("nn.Module: Net_0"):
                    b.leaf("aten::linear", us=40 + micro % 3)
    windows = check(build_timeline(b.build()))
    assert len(windows) > 16


NAMES = (
    "aten::linear",
    "aten::relu",
    "nn.Module: A_0",
    "nn.Module: B_0",
    "train.py(3): run",
    "Optimizer.step#SGD.step",
)


@st.composite
def programs(draw):
    """Any nest of events over some steps, with work on two threads, launches and holes."""
    b = TraceBuilder()
    calls = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 400), st.integers(0, 3)), max_size=12)
    has_steps = draw(st.booleans())
    for number in range(draw(st.integers(1, 12))):
        if has_steps:
            with b.step(number):
                play(b, draw(calls))
        else:
            play(b, draw(calls))
        b.host(draw(st.integers(0, 30)))
    return b.build()


def play(b, calls):
    for name, us, kind in calls:
        if kind == 0:
            b.leaf(name, us=us, kernel="kernel", kernel_us=us)
        elif kind == 1:
            with b.thread(2):
                b.leaf(name, us=us)
        elif kind == 2:
            with b.frame(name), b.annotation(name):
                b.leaf("aten::add", us=us)
        else:
            b.call(name, us=us)


@settings(max_examples=150, deadline=None)
@given(programs())
def test_windows_of_any_trace(trace):
    check(build_timeline(trace))


def test_work_in_no_phase_keeps_its_own_window_only_where_it_takes_time():
    b = TraceBuilder()
    for number in range(2):
        with b.step(number):
            with b.frame("nn.Module: Net_0"):
                b.leaf("aten::linear", us=1000)
            b.leaf("aten::add", us=1)
            with b.frame("nn.Module: Other_0"):
                b.leaf("aten::linear", us=1000)
            b.leaf("aten::item", us=500)
    trace = b.build()
    timeline = build_timeline(trace)
    windows = check(timeline)
    assert [windows.regions[r] for r in windows.region[:3]] == ["forward: Net_0", "forward: Other_0", "item"]
    item = trace.rows_named(["aten::item"])
    assert np.all(timeline.phase[item] == Phase.OTHER)
