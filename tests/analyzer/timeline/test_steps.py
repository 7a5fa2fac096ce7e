"""Steps from every source, warm-up, and device work by launch."""

import numpy as np
import pytest

from tests.builders import TraceBuilder, row_of
from torchtraceap.analyzer.timeline.launches import build_launches
from torchtraceap.analyzer.timeline.model import StepSource
from torchtraceap.analyzer.timeline.steps import find_steps
from torchtraceap.analyzer.timeline.tree import build_tree
from torchtraceap.analyzer.trace.model import NONE, Category


def steps_of(b: TraceBuilder):
    trace = b.build()
    tree = build_tree(trace)
    return trace, find_steps(trace, tree, build_launches(trace, tree))


def iteration(b: TraceBuilder, layers: int = 4):
    b.leaf("aten::conv2d", kernel="stem")
    for _ in range(layers):
        b.leaf("aten::linear", kernel="gemm")
        b.leaf("aten::relu", kernel="relu")
    b.leaf("aten::log_softmax", kernel="head")


def test_device_work_belongs_to_the_step_that_launched_it():
    b = TraceBuilder()
    launched = []
    for number in range(3):
        with b.step(number):
            for _ in range(5):
                launched.append((number, b.kernel("sgemm", us=1000)))
    trace, steps = steps_of(b)
    assert steps.source is StepSource.PROFILER
    assert steps.number.tolist() == [0, 1, 2]
    assert [steps.of[row_of(trace, h)] for _, h in launched] == [number for number, _ in launched]
    assert trace.ts_ns[row_of(trace, launched[-1][1])] > steps.end_ns[-1], "the host ran far ahead"


def test_work_between_and_outside_steps_has_no_step():
    b = TraceBuilder()
    before = b.device_work(Category.KERNEL, "queued before the recording", us=50, launched=None)
    with b.step(7):
        inside = b.leaf("aten::add", kernel="add")
    between = b.leaf("aten::mul", kernel="mul")
    with b.step(8):
        b.leaf("aten::add", kernel="add")
    trace, steps = steps_of(b)
    assert [steps.of[row_of(trace, h)] for h in (before, inside, between)] == [NONE, 0, NONE]


def test_a_last_step_cut_off_by_the_end_is_none():
    b = TraceBuilder()
    for number in range(3):
        with b.step(number):
            iteration(b)
    with b.step(3, us=1):
        pass
    assert steps_of(b)[1].number.tolist() == [0, 1, 2]


def test_ends_of_optimizer_steps_where_nothing_is_marked():
    b = TraceBuilder()
    for _ in range(3):
        iteration(b)
        for optimizer in ("Optimizer.step#Adam.step", "Optimizer.step#SGD.step"):
            with b.annotation(optimizer):
                b.leaf("aten::add_", kernel="add")
    b.leaf("aten::conv2d", kernel="stem")
    trace, steps = steps_of(b)
    assert steps.source is StepSource.OPTIMIZER
    assert len(steps) == 3
    assert steps.of[0] == 0
    assert steps.of[trace.rows(Category.CPU_OP)[-1]] == NONE, "the step that follows was not finished"


def test_two_optimizers_of_one_name_make_one_step():
    b = TraceBuilder()
    for _ in range(4):
        for layers in (3, 9):
            iteration(b, layers)
            with b.annotation("Optimizer.step#Adam.step"):
                b.leaf("aten::_foreach_add_", kernel="add")
    _, steps = steps_of(b)
    assert (steps.source, len(steps)) == (StepSource.OPTIMIZER, 4)
    assert len(set(steps.duration_ns.tolist())) == 1


def test_repeating_kernels_make_steps():
    b = TraceBuilder()
    for _ in range(5):
        with b.annotation("request"):
            b.host(20)
            iteration(b)
    _, steps = steps_of(b)
    assert steps.source is StepSource.PERIOD
    assert len(steps) == 5
    assert np.all(steps.start_ns[1:] == steps.end_ns[:-1])
    assert len(set(steps.duration_ns.tolist())) == 1, "the whole request is the step, from its own start"


def test_equal_layers_run_once_are_no_steps():
    b = TraceBuilder()
    iteration(b, layers=12)
    assert steps_of(b)[1].source is StepSource.WHOLE


def test_repeating_operators_make_steps_on_the_cpu():
    b = TraceBuilder()
    for _ in range(4):
        with b.op("aten::linear"):
            b.leaf("aten::addmm")
        b.leaf("aten::relu")
        b.leaf("aten::sigmoid")
    _, steps = steps_of(b)
    assert (steps.source, len(steps)) == (StepSource.PERIOD, 4)


def test_the_start_of_the_libraries_is_warm_up():
    b = TraceBuilder()
    for number in range(4):
        with b.step(number):
            if number == 0:
                b.launch("cudaStreamCreateWithFlags", us=5000)
            iteration(b)
    _, steps = steps_of(b)
    assert steps.is_warmup.tolist() == [True, False, False, False]
    assert not steps.is_cold


def test_allocating_in_every_step_is_a_habit_not_a_start():
    b = TraceBuilder()
    for number in range(4):
        with b.step(number):
            b.launch("cudaMalloc", us=5000)
            iteration(b)
    _, steps = steps_of(b)
    assert not steps.is_warmup.any()
    assert not steps.is_cold


def test_a_slow_launch_is_a_start_only_if_the_device_is_idle_meanwhile():
    waiting, loading = TraceBuilder(), TraceBuilder()
    with waiting.step(0):
        waiting.kernel("long", us=90_000)
        waiting.launch(us=80_000)
    with loading.step(0):
        loading.launch(us=80_000)
        loading.kernel("short", us=10)
    assert not steps_of(waiting)[1].is_cold
    assert steps_of(loading)[1].is_cold


def test_two_passes_of_which_the_second_still_starts_up_are_one_cold_pass():
    b = TraceBuilder()
    for start_up_us in (900_000, 5_000):
        with b.annotation("forward"):
            b.launch("cudaFree", us=start_up_us)
            iteration(b)
    _, steps = steps_of(b)
    assert (steps.source, len(steps), steps.is_cold) == (StepSource.WHOLE, 1, True)


def test_no_work_no_steps():
    _, steps = steps_of(TraceBuilder())
    assert len(steps) == 0
    assert not steps.is_cold


@pytest.mark.parametrize("number", ["9" * 30, "9" * 5000, "\u00b2", "-1", ""])
def test_a_step_whose_number_is_none(number: str):
    b = TraceBuilder()
    for name in (number, "5"):
        with b.annotation(f"ProfilerStep#{name}"):
            iteration(b)
    assert steps_of(b)[1].number.tolist() == [NONE, 5]
