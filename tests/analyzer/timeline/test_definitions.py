"""Idle, kernel and overlap figures beside the definitions of HTA and TraceLens.

Both are written out here, event by event, from their documentation and sources (HTA: `analyzers/breakdown_analysis.py`,
`communication_analysis.py`; TraceLens: `TreePerf/gpu_event_analyser.py`):

- HTA temporal breakdown: over the kernels, copies and fills of a rank, idle = span - union; compute = union of the
  kernels that neither communicate nor copy; non-compute = the rest of the busy time.
- HTA overlap: of the union of communication kernels, the share that computation kernels cover.
- TraceLens: computation = union of everything that is neither communication nor copy (fills count as computation);
  exposed communication = communication less computation; exposed copies = copies less both; idle = span - union.
- HTA idle breakdown: per stream, a gap before a kernel is "host wait" if the kernel was launched after its predecessor
  ended, "kernel wait" if it is shorter than 30 ns, else "other".
- HTA takes what overlaps a step's range in time as that step's work.

Where this project differs, and why:

- Whole recording: nothing differs (`gpu_idle_pct`), but that figure holds the profiler's start and end, warm-up and
  whatever lies between steps; findings are built on the steady steps (`idle_pct`).
- Fills (memset) count with copies, as moving bytes and computing nothing; TraceLens counts them as computation.
- Idle is of the device, not of one stream: a stream without work costs nothing while another one computes.
- "Host wait" is split into what the host was doing: loading data, having waited for the device, or just being late.
- A step's work is what the step *launched*. By time, the work of a host that runs ahead goes to a later step.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.builders import TraceBuilder
from tests.shared import shared_timeline
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.model import IdleCause, KernelClass, Timeline
from torchtraceap.analyzer.trace.model import DEVICE_CATEGORIES, Category

S05 = "traces/S05_hta_resnet50_ddp_a100.json.gz"
S06 = "traces/S06_hta_resnet50_v100_ns.json.gz"
S08 = "traces/S08_tracelens_vit_h100.json.gz"
S11 = "traces/S11_tracelens_resnet18_ddp_ckpt_mi300.json.gz"
REAL = [S05, S06, S08, S11]


def built() -> Timeline:
    """Two steps with compute, communication beside and after it, copies, a fill and a late host."""
    b = TraceBuilder(launch_us=5)
    for number in range(2):
        with b.step(number):
            b.copy(us=30)
            b.kernel("ampere_sgemm_128x64_tn", us=100, stream=7)
            b.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", us=150, stream=20)
            call = b.launch("cudaMemsetAsync")
            b.device_work(Category.MEMSET, "Memset (Device)", us=10, launched=call)
            b.host(200)
            b.kernel("ampere_sgemm_128x64_nt", us=50, stream=7)
            b.synchronize()
    return build_timeline(b.build())


def timeline_of(name: str) -> Timeline:
    return built() if name == "built" else shared_timeline(name)


class Sweep:
    """Time by what runs, from a plain sweep over all starts and ends."""

    def __init__(self, events: list[tuple[int, int, str]]) -> None:
        changes = sorted([(s, kind, 1) for s, _, kind in events] + [(e, kind, -1) for _, e, kind in events])
        self.ns: dict[frozenset[str], int] = {}
        running: dict[str, int] = {}
        before = changes[0][0]
        for moment, kind, change in changes:
            now = frozenset(kind for kind, count in running.items() if count)
            self.ns[now] = self.ns.get(now, 0) + moment - before
            running[kind] = running.get(kind, 0) + change
            before = moment
        self.span_ns = changes[-1][0] - changes[0][0]

    def when(self, wanted) -> int:
        return sum(ns for running, ns in self.ns.items() if wanted(running))


def events_of(timeline: Timeline, kind_of_fill: str) -> list[tuple[int, int, str]]:
    trace = timeline.trace
    events = []
    for row in trace.rows(*DEVICE_CATEGORIES):
        kind = {Category.MEMCPY: "copy", Category.MEMSET: kind_of_fill}.get(Category(trace.cat[row]), "compute")
        if "nccl" in trace.name_of(row).lower():
            kind = "communication"
        events.append((int(trace.ts_ns[row]), int(trace.end_ns[row]), kind))
    return events


@pytest.mark.parametrize("name", ["built", *REAL])
def test_idle_of_the_whole_recording_is_both_tools_idle(name):
    timeline = timeline_of(name)
    sweep = Sweep(events_of(timeline, "copy"))
    idle_ns = sweep.when(lambda running: not running)
    assert timeline.breakdown.gpu_idle_pct == pytest.approx(100 * idle_ns / sweep.span_ns)
    gaps_ns = int((timeline.idle.end_ns - timeline.idle.start_ns).sum())
    assert gaps_ns == idle_ns


@pytest.mark.parametrize("name", ["built", S05, S11])
def test_overlap_is_htas_where_the_steps_hold_all_communication(name):
    timeline = timeline_of(name)
    sweep = Sweep(events_of(timeline, "copy"))
    communication = sweep.when(lambda running: "communication" in running)
    overlapped = sweep.when(lambda running: {"communication", "compute"} <= running)
    assert timeline.breakdown.communication_overlap_pct == pytest.approx(100 * overlapped / communication, abs=0.05)


@pytest.mark.parametrize("name", ["built", S05, S08, S11])
def test_computation_is_tracelens_less_the_fills(name):
    timeline = timeline_of(name)
    theirs = Sweep(events_of(timeline, "compute"))
    ours = Sweep(events_of(timeline, "copy"))
    fills_alone = theirs.when(lambda running: "compute" in running) - ours.when(lambda running: "compute" in running)
    assert fills_alone >= 0
    exposed = theirs.when(lambda running: "communication" in running and "compute" not in running)
    ours_exposed = ours.when(lambda running: "communication" in running and "compute" not in running)
    assert 0 <= ours_exposed - exposed <= fills_alone or ours_exposed == exposed
    if name == "built":
        assert fills_alone > 0
        figures = timeline.breakdown
        busy = figures.compute_pct + figures.memcpy_pct + figures.communication_exposed_pct
        assert figures.compute_pct / busy == pytest.approx(
            ours.when(lambda running: "compute" in running) / ours.when(bool), abs=1e-6
        )


@pytest.mark.parametrize("name", ["built", S05, S06, S08])
def test_htas_host_wait_is_never_a_kernel_gap(name):
    timeline = timeline_of(name)
    trace, idle = timeline.trace, timeline.idle
    launch = timeline.launches.runtime[idle.before]
    is_known = launch >= 0
    launched_after = is_known & (trace.ts_ns[launch] >= idle.start_ns)
    launched_before = is_known & (trace.end_ns[launch] <= idle.start_ns)
    is_own = idle.cause == IdleCause.KERNEL_GAP
    assert launched_after.any()
    assert not (launched_after & is_own).any()
    assert np.all(launched_before[is_own & is_known])


def test_a_stream_without_work_is_not_idle_time():
    timeline = timeline_of("built")
    trace = timeline.trace
    per_stream = 0
    for stream in (7, 20):
        rows = np.flatnonzero(trace.stream == stream)
        per_stream += int((trace.ts_ns[rows][1:] - trace.end_ns[rows][:-1]).clip(min=0).sum())
    ours = int((timeline.idle.end_ns - timeline.idle.start_ns).sum())
    assert ours < per_stream, "HTA's sum over streams counts a stream that waits while another one works"


def test_by_time_a_host_that_runs_ahead_gets_other_steps_work():
    timeline = shared_timeline(S06)
    trace, steps = timeline.trace, timeline.steps
    kernels = trace.rows(Category.KERNEL)
    by_time = [
        int(((trace.ts_ns[kernels] < end) & (trace.end_ns[kernels] > start)).sum())
        for start, end in zip(steps.start_ns, steps.end_ns, strict=True)
    ]
    by_launch = np.bincount(steps.of[kernels], minlength=len(steps)).tolist()
    assert by_launch == [870] * 5
    assert min(by_time) < 500, "HTA's view of the first step is a third of its work"


def test_kernel_time_per_class_covers_all_kernels_as_tracelens_sums_them():
    for name in (S05, S11):
        timeline = shared_timeline(name)
        trace = timeline.trace
        kernels = trace.rows(Category.KERNEL)
        kernels = kernels[timeline.steps.of[kernels] >= 0]
        nccl = [row for row in kernels if "nccl" in trace.name_of(row).lower()]
        theirs = 100 * trace.dur_ns[nccl].sum() / trace.dur_ns[kernels].sum()
        assert timeline.breakdown.class_pct[KernelClass.COMMUNICATION] == pytest.approx(theirs)
        assert sum(timeline.breakdown.class_pct) == pytest.approx(100)
