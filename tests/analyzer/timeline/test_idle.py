"""Idle time by cause: of the device, and of a host without one."""

import numpy as np
import pytest

from tests.builders import TraceBuilder, row_of
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.model import IdleCause
from torchtraceap.analyzer.trace.model import NONE, Category

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def idle_of(b: TraceBuilder):
    timeline = build_timeline(b.build())
    trace, idle = timeline.trace, timeline.idle
    gaps = [
        (IdleCause(cause), (end - start) / 1000)
        for cause, start, end in zip(idle.cause, idle.start_ns, idle.end_ns, strict=True)
    ]
    return trace, idle, gaps


def test_a_late_launch_is_host_bound_and_names_the_launch():
    b = TraceBuilder(launch_us=5)
    with b.step(0):
        b.kernel("first", us=10)
        b.host(40)
        late = b.launch()
        kernel = b.device_work(Category.KERNEL, "late", us=10, launched=late)
    trace, idle, gaps = idle_of(b)
    assert gaps == [(IdleCause.HOST_BOUND, 35)]
    assert idle.before[0] == row_of(trace, kernel)
    assert idle.host[0] == row_of(trace, late)
    assert idle.step[0] == 0


def test_queued_work_that_starts_late_is_the_devices_own_gap():
    b = TraceBuilder()
    b.kernel("first", us=100)
    b.kernel("second", us=100)
    call = b.launch()
    start = b.stream_free[7] + 3
    b.event(Category.KERNEL, "third", start, 50, tid=7, stream=7, correlation=call + 1)
    assert idle_of(b)[2] == [(IdleCause.KERNEL_GAP, 3)]


def test_a_synchronisation_explains_as_much_idle_time_as_it_held_the_host():
    b = TraceBuilder(launch_us=5)
    b.kernel("work", us=100)
    sync = b.synchronize(us=0)
    b.host(300)
    b.kernel("next", us=10)
    trace, idle, gaps = idle_of(b)
    # The host waited from 5 to 105; it would have launched 100 us earlier, 205 us after the device ran dry.
    assert gaps == [(IdleCause.SYNC, 100), (IdleCause.HOST_BOUND, 205)]
    assert idle.host[0] == row_of(trace, sync)


def test_a_read_of_a_result_is_a_synchronisation():
    b = TraceBuilder(launch_us=5)
    b.kernel("work", us=1000)
    b.item()
    b.kernel("next", us=10)
    causes = [cause for cause, _ in idle_of(b)[2]]
    assert causes == [IdleCause.SYNC]


def test_loading_data_explains_a_gap_that_it_fills_for_the_most_part():
    b = TraceBuilder(launch_us=5)
    b.kernel("work", us=20)
    with b.annotation(LOADER) as loader, b.op("aten::stack", us=500):
        pass
    b.host(50)
    b.kernel("next", us=10)
    trace, idle, gaps = idle_of(b)
    assert gaps == [(IdleCause.DATA, 535)]
    assert idle.host[0] == row_of(trace, loader)


def test_a_short_load_does_not():
    b = TraceBuilder(launch_us=5)
    b.kernel("work", us=20)
    with b.annotation(LOADER, us=10):
        pass
    b.host(500)
    b.kernel("next", us=10)
    assert [cause for cause, _ in idle_of(b)[2]] == [IdleCause.HOST_BOUND]


def test_waiting_for_another_rank_on_the_host():
    b = TraceBuilder(launch_us=5)
    b.kernel("work", us=20)
    with b.annotation("gloo:all_reduce", us=400) as reduce:
        pass
    b.kernel("next", us=10)
    trace, idle, gaps = idle_of(b)
    assert [cause for cause, _ in gaps] == [IdleCause.COMMUNICATION]
    assert idle.host[0] == row_of(trace, reduce)


def test_streams_are_busy_together():
    b = TraceBuilder(launch_us=5)
    b.kernel("compute", us=100, stream=7)
    b.kernel("ncclDevKernel_AllReduce_Sum_f32_RING", us=100, stream=20)
    assert idle_of(b)[2] == []


def test_a_cpu_only_trace_is_idle_where_no_operator_runs_and_names_the_frame():
    b = TraceBuilder(devices=())
    with b.step(0), b.frame("train.py(1): loop"):
        b.leaf("aten::add", us=10)
        with b.frame("metrics.py(9): update") as update:
            b.host(30)
        last = b.leaf("aten::mul", us=10)
        b.host(4)
    trace, idle, gaps = idle_of(b)
    assert gaps == [(IdleCause.HOST_BOUND, 30), (IdleCause.HOST_BOUND, 4)]
    assert idle.host[0] == row_of(trace, update)
    assert idle.before.tolist() == [row_of(trace, last), NONE]
    assert idle.step.tolist() == [0, 0]


def test_a_cpu_only_trace_waits_for_its_loader():
    b = TraceBuilder(devices=())
    with b.step(0):
        with b.annotation(LOADER, us=20) as loader:
            b.leaf("aten::stack", us=6)
        b.leaf("aten::add", us=10)
    trace, idle, gaps = idle_of(b)
    assert gaps == [(IdleCause.DATA, 10), (IdleCause.DATA, 10)]
    assert set(idle.host.tolist()) == {row_of(trace, loader)}


@pytest.mark.parametrize("us", [0, 5])
def test_no_device_event_or_one_leaves_no_gap(us):
    b = TraceBuilder()
    if us:
        b.kernel("only", us=us)
    _, idle, _ = idle_of(b)
    assert len(idle.start_ns) == 0
    assert np.array_equal(idle.start_ns, idle.end_ns)
