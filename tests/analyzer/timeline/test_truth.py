"""Recorded traces against figures that were worked out by hand from their events."""

import numpy as np
import pytest

from tests.shared import shared_timeline, shared_traces, truth
from torchtraceap.analyzer.timeline.intervals import union
from torchtraceap.analyzer.timeline.model import KernelClass, Phase, StepSource, Timeline
from torchtraceap.analyzer.trace.model import DEVICE_CATEGORIES, NONE, Category

TOLERANCE = 0.2
"""Points, or ms; figures given as whole numbers must round to them."""

TRACES = shared_traces() or ["traces/S01_kineto_resnet50_w0_v100.json.gz"]


def busy_ms_per_step(timeline: Timeline) -> float:
    rows = timeline.trace.rows(*DEVICE_CATEGORIES)
    busy = union(timeline.trace.ts_ns[rows], timeline.trace.end_ns[rows])
    return busy.total_ns / 1e6 / len(timeline.steps)


def pageable_htod_mb(timeline: Timeline) -> float:
    trace = timeline.trace
    rows = [row for row in trace.rows(Category.MEMCPY) if "HtoD (Pageable" in trace.name_of(row)]
    return trace.size_bytes[rows].sum() / 1e6


def share_of_kernels(timeline: Timeline, kernel_class: KernelClass) -> float:
    return timeline.breakdown.class_pct[kernel_class]


def align1_pct(timeline: Timeline) -> float:
    trace = timeline.trace
    kernels = trace.rows(Category.KERNEL)
    unaligned = [row for row in kernels if "align1" in trace.name_of(row)]
    return 100 * trace.dur_ns[unaligned].sum() / trace.dur_ns[kernels].sum()


FIGURES = {
    "gpu_idle_pct": lambda t: t.breakdown.gpu_idle_pct,
    "step_idle_pct": lambda t: t.breakdown.step_idle_pct,
    "dataloader_pct_of_step": lambda t: t.breakdown.data_loading_pct,
    "kernels_per_step": lambda t: t.breakdown.kernels_per_step,
    "nccl_pct_of_kernel_time": lambda t: share_of_kernels(t, KernelClass.COMMUNICATION),
    "nccl_pct_of_busy": lambda t: 100 * t.breakdown.communication_pct / (100 - t.breakdown.idle_pct),
    "comm_overlap_pct": lambda t: t.breakdown.communication_overlap_pct,
    "exposed_comm_pct": lambda t: t.breakdown.communication_exposed_pct,
    "layout_kernels": lambda t: int((t.kernel_class == KernelClass.LAYOUT).sum()),
    "layout_pct_of_kernel_time": lambda t: share_of_kernels(t, KernelClass.LAYOUT),
    "softmax_pct_of_kernel_time": lambda t: share_of_kernels(t, KernelClass.SOFTMAX),
    "align1_pct_of_kernel_time": align1_pct,
    "device_ms_per_step": busy_ms_per_step,
    "device_ms_per_iter": busy_ms_per_step,
    "pageable_htod_mb": pageable_htod_mb,
}


@pytest.mark.parametrize("name", [name for name in TRACES if name.startswith("traces/S") and "S16" not in name])
def test_figures_of_recorded_traces(name):
    timeline = shared_timeline(name)
    known = truth()[name.removeprefix("traces/")].get("figures", {})
    found = {figure: FIGURES[figure](timeline) for figure in known}
    wrong = {
        figure: (value, found[figure])
        for figure, value in known.items()
        if abs(found[figure] - value) > (TOLERANCE if isinstance(value, float) else 0.5)
    }
    assert not wrong, f"(known, found): {wrong}"


@pytest.mark.parametrize("name", TRACES)
def test_what_holds_for_every_trace(name):
    timeline = shared_timeline(name)
    trace, steps, figures = timeline.trace, timeline.steps, timeline.breakdown
    parts = (figures.compute_pct, figures.memcpy_pct, figures.communication_exposed_pct, figures.idle_pct)
    assert sum(parts) == pytest.approx(100)
    assert min(parts) >= 0
    assert sum(figures.idle_by_cause_pct) == pytest.approx(figures.idle_pct)
    assert np.all(timeline.idle.end_ns > timeline.idle.start_ns)
    assert len(steps) >= 1
    assert np.all(steps.start_ns[1:] >= steps.end_ns[:-1])
    assert len(steps.steady) >= 1
    tree, launches = timeline.tree, timeline.launches
    children = np.flatnonzero(tree.parent >= 0)
    assert np.all(tree.self_ns >= 0)
    assert np.all(trace.thread[children] == trace.thread[tree.parent[children]])
    assert np.all(trace.end_ns[tree.parent[children]] > trace.ts_ns[children])
    device_rows = trace.rows(*DEVICE_CATEGORIES)
    launched = device_rows[launches.runtime[device_rows] >= 0]
    assert np.all(trace.cat[launches.runtime[launched]] == Category.RUNTIME)
    assert np.all(trace.correlation[launches.runtime[launched]] == trace.correlation[launched])
    backward = np.flatnonzero(timeline.forward_op >= 0)
    assert np.all(timeline.phase[backward] == Phase.BACKWARD)
    assert np.all(trace.ts_ns[timeline.forward_op[backward]] <= trace.ts_ns[backward])


def test_a_cold_start_inside_the_recording_is_left_out():
    timeline = shared_timeline("traces/S03_kineto_resnet50_autogradapi_w4.json.gz")
    assert timeline.steps.source is StepSource.OPTIMIZER
    assert timeline.steps.is_warmup.tolist() == [True] + [False] * 5
    assert timeline.step_us < 130_000
    assert timeline.breakdown.idle_pct < 15


def test_one_cold_pass_says_so():
    steps = shared_timeline("traces/S07_hta_alexnet_a100_coldstart.json.gz").steps
    assert steps.is_cold
    assert len(steps) == 1


def test_kernels_launched_before_the_recording_belong_to_no_step():
    timeline = shared_timeline("traces/S04_kineto_resnet50_w0_listform.json.gz")
    per_step = np.bincount(timeline.steps.of[timeline.trace.rows(*DEVICE_CATEGORIES)] + 1)
    assert per_step.tolist() == [765] + [1527] * 6


@pytest.mark.parametrize(
    "name",
    [
        "traces/S01_kineto_resnet50_w0_v100.json.gz",
        "traces/S11_tracelens_resnet18_ddp_ckpt_mi300.json.gz",
        "projects/resnet_birds/trace.json.gz",
        "projects/unet_seg/trace.json.gz",
    ],
)
def test_every_backward_convolution_has_its_forward_convolution(name):
    timeline = shared_timeline(name)
    trace = timeline.trace
    rows = [row for row in trace.rows(Category.CPU_OP) if "convolution_backward" in trace.name_of(row)]
    assert rows
    for row in rows:
        forward = timeline.forward_op[row]
        assert forward != NONE
        assert "convolution" in trace.name_of(forward)
        known = {trace.inputs_of(forward).shape(argument) for argument in (0, 1)}
        assert known & set(trace.inputs_of(row).dims), "the same activation or the same weight"
