"""The figures of a step, on small traces whose answers are plain."""

import math

import pytest

from tests.builders import TraceBuilder
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.model import KernelClass
from torchtraceap.analyzer.timeline.steps import step_windows

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"


def breakdown_of(b: TraceBuilder):
    return build_timeline(b.build()).breakdown


def whole(figures) -> float:
    return figures.compute_pct + figures.memcpy_pct + figures.communication_exposed_pct + figures.idle_pct


def test_a_training_step():
    b = TraceBuilder(launch_us=5)
    for number in range(4):
        with b.step(number):
            with b.annotation(LOADER, us=200):
                pass
            b.copy(us=45)
            b.leaf("aten::linear", us=0, kernel="ampere_sgemm_128x64_tn", kernel_us=300, sequence=number)
            with b.thread(2), b.op("AddmmBackward0", us=0, sequence=number):
                b.kernel("ampere_sgemm_128x64_nt", us=350)
            with b.annotation("Optimizer.step#SGD.step"):
                b.kernel("void at::native::vectorized_elementwise_kernel<4, add>", us=50)
            b.synchronize(us=50)
    figures = breakdown_of(b)
    assert figures.step_us == pytest.approx(1005)
    assert figures.step_spread_us == 0
    assert figures.device_step_us == pytest.approx(45 + 5 + 300 + 350 + 50)
    assert figures.data_loading_pct == pytest.approx(100 * 200 / 1005)
    assert figures.compute_pct == pytest.approx(100 * 700 / 1005)
    assert figures.memcpy_pct == pytest.approx(100 * 45 / 1005)
    assert figures.forward_pct == pytest.approx(100 * 300 / 1005)
    assert figures.backward_pct == pytest.approx(100 * 350 / 1005)
    assert figures.optimizer_pct == pytest.approx(100 * 50 / 1005)
    assert figures.kernels_per_step == 3
    assert figures.class_pct[KernelClass.ELEMENTWISE] == pytest.approx(100 * 50 / 700)
    assert whole(figures) == pytest.approx(100)
    assert sum(figures.idle_by_cause_pct) == pytest.approx(figures.idle_pct)


def test_a_host_that_runs_ahead_does_not_shorten_the_step():
    b = TraceBuilder(launch_us=5)
    for number in range(5):
        with b.step(number):
            b.kernel("gemm", us=1000)
    timeline = build_timeline(b.build())
    assert timeline.steps.duration_ns.tolist() == [5000] * 5
    assert timeline.breakdown.step_us == 1000
    assert timeline.breakdown.compute_pct == pytest.approx(100 * 5000 / 5005)
    start_ns, end_ns = step_windows(timeline.trace, timeline.steps, device_paced=True)
    assert (end_ns - start_ns).tolist() == [1005_000, 1000_000, 1000_000, 1000_000, 1000_000]


def test_communication_beside_compute_is_not_exposed():
    b = TraceBuilder(launch_us=0)
    with b.step(0):
        b.kernel("gemm", us=100, stream=7)
        b.host(60)
        b.kernel(NCCL, us=100, stream=20)
        b.synchronize(us=0)
    figures = breakdown_of(b)
    assert figures.communication_pct == pytest.approx(100 * 100 / 160)
    assert figures.communication_exposed_pct == pytest.approx(100 * 60 / 160)
    assert figures.communication_overlap_pct == pytest.approx(40)
    assert whole(figures) == pytest.approx(100)


def test_warm_up_is_left_out():
    b = TraceBuilder(launch_us=5)
    for number in range(4):
        with b.step(number):
            if number == 0:
                b.launch("cudaFree", us=500_000)
                b.kernel("autotune", us=900)
            b.kernel("gemm", us=100)
            b.synchronize(us=5)
    figures = breakdown_of(b)
    assert figures.step_us == pytest.approx(110)
    assert figures.kernels_per_step == 1
    assert figures.gpu_idle_pct < 50, "the whole recording still counts for the device"


def test_a_cpu_only_trace_counts_operators_as_compute():
    b = TraceBuilder(devices=())
    for number in range(3):
        with b.step(number):
            with b.annotation(LOADER, us=40):
                b.leaf("aten::stack", us=10)
            with b.op("aten::linear", us=20):
                b.leaf("aten::addmm", us=80)
            b.host(50)
    figures = breakdown_of(b)
    assert figures.step_us == pytest.approx(200)
    assert figures.device_step_us == pytest.approx(200)
    assert figures.compute_pct == pytest.approx(55)
    assert figures.idle_pct == pytest.approx(45)
    assert figures.step_idle_pct == pytest.approx(45)
    assert figures.data_loading_pct == pytest.approx(25)
    assert figures.idle_by_cause_pct == pytest.approx((25, 20, 0, 0, 0))
    assert math.isnan(figures.gpu_idle_pct)


def test_an_empty_trace_has_figures_too():
    figures = breakdown_of(TraceBuilder())
    assert figures.step_us == 0
    assert figures.kernels_per_step == 0
