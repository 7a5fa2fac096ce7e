"""The what-if replay: what it predicts is what happens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.analyzer.timeline.programs import Op, Program, graph_of, random_program, recorded_step_us, rows_named
from tests.builders import TraceBuilder, row_of
from tests.shared import shared_timeline
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.edit import Edit, Scale
from torchtraceap.analyzer.timeline.model import NodeKind, ReplayGraph
from torchtraceap.analyzer.timeline.replay import per_step_us, replay
from torchtraceap.analyzer.trace.model import DEVICE_CATEGORIES, HOST_CATEGORIES, Category, Trace

NOTHING = Edit()
SEEDS = range(20)
RECORDED = (
    "S01_kineto_resnet50_w0_v100",
    "S02_kineto_resnet50_w4_v100",
    "S05_hta_resnet50_ddp_a100",
    "S06_hta_resnet50_v100_ns",
    "S08_tracelens_vit_h100",
    "S10_tracelens_timesformer_h100",
    "S11_tracelens_resnet18_ddp_ckpt_mi300",
    "S12_ao_vit_bf16_compile_a100",
    "S14_tracelens_resnet18_gpuonly_mi210",
)


def saved_us(graph: ReplayGraph, edit: Edit) -> float:
    return replay(graph, NOTHING).step_us - replay(graph, edit).step_us


def kernels(trace: Trace, *positions: int) -> np.ndarray:
    return rows_named(trace, *(f"kernel{position}" for position in positions))


def ops(trace: Trace, *positions: int) -> np.ndarray:
    return rows_named(trace, *(f"aten::op{position}" for position in positions))


def assert_predicts(trace: Trace, edit: Edit, changed: Program) -> None:
    predicted = replay(graph_of(trace), edit).step_us_each
    np.testing.assert_allclose(predicted, recorded_step_us(changed.record()), rtol=0.002)


# Programs recorded before and after


@pytest.mark.parametrize("seed", SEEDS)
def test_unchanged(seed: int) -> None:
    trace = random_program(seed).record()
    np.testing.assert_allclose(replay(graph_of(trace), NOTHING).step_us_each, recorded_step_us(trace), rtol=1e-6)


@pytest.mark.parametrize("factor", [0.0, 0.3, 3.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_scaled_kernels(seed: int, factor: float) -> None:
    program = random_program(seed)
    chosen = [p for p in range(len(program.ops)) if p % 3 == seed % 3]
    trace = program.record()
    edit = Edit(scales=(Scale(kernels(trace, *chosen), factor),))
    assert_predicts(trace, edit, replace(program, scale=dict.fromkeys(chosen, factor)))


@pytest.mark.parametrize("factor", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_scaled_operators(seed: int, factor: float) -> None:
    """Host work is scaled, and neither the kernels nor the waits for them."""
    program = random_program(seed)
    chosen = [p for p, op in enumerate(program.ops) if p % 3 == seed % 3 and not op.copies_us]
    trace = program.record()
    edit = Edit(scales=(Scale(ops(trace, *chosen), factor),))
    assert_predicts(trace, edit, replace(program, host_scale=dict.fromkeys(chosen, factor)))


@pytest.mark.parametrize("seed", SEEDS)
def test_removed_operators(seed: int) -> None:
    program = random_program(seed)
    chosen = [p for p in range(len(program.ops)) if p % 4 == seed % 4]
    trace = program.record()
    assert_predicts(trace, Edit(removed_ops=ops(trace, *chosen)), program.without(chosen))


@pytest.mark.parametrize("seed", SEEDS)
def test_waits_left_out(seed: int) -> None:
    program = random_program(seed)
    chosen = [p for p, op in enumerate(program.ops) if op.syncs]
    trace = program.record()
    by_op = Edit(unsynced=ops(trace, *chosen))
    assert_predicts(trace, by_op, replace(program, unsynced=frozenset(chosen)))
    by_call = Edit(unsynced=rows_named(trace, "cudaStreamSynchronize"))
    assert replay(graph_of(trace), by_call).step_us == replay(graph_of(trace), by_op).step_us


@pytest.mark.parametrize("seed", SEEDS)
def test_less_work_never_takes_longer(seed: int) -> None:
    trace = random_program(seed).record()
    graph = graph_of(trace)
    rng = np.random.default_rng(seed)
    before = replay(graph, NOTHING).step_us_each.sum()
    for _ in range(5):
        rows = rng.choice(len(trace), size=len(trace) // 5, replace=False)
        for edit in (
            Edit(removed_ops=np.sort(rows)),
            Edit(scales=(Scale(np.sort(rows), 0.4),)),
            Edit(unsynced=np.sort(rows)),
            Edit(host_factor=0.7),
        ):
            assert replay(graph, edit).step_us_each.sum() <= before + 1e-3


# Known answers


def test_host_bound_step_gains_nothing_from_a_faster_device() -> None:
    program = Program(tuple(Op(us=50, kernels=((5, 7),)) for _ in range(20)))
    trace = program.record()
    graph = graph_of(trace)
    step_us = 20 * (50 + 5) + 4 + 2
    assert replay(graph, NOTHING).step_us == pytest.approx(step_us)
    assert saved_us(graph, Edit(scales=(Scale(trace.rows(Category.KERNEL), 0.0),))) == pytest.approx(0, abs=6)
    assert saved_us(graph, Edit(host_factor=0.5)) == pytest.approx(step_us / 2, abs=6)


def test_device_bound_step_gains_nothing_from_a_faster_host() -> None:
    program = Program(tuple(Op(us=5, kernels=((100, 7),)) for _ in range(20)))
    trace = program.record()
    graph = graph_of(trace)
    assert replay(graph, NOTHING).step_us == pytest.approx(20 * 100 + 9.5 + 2 + 2, abs=1)
    assert saved_us(graph, Edit(host_factor=0.01)) < 0.01 * 2000
    assert saved_us(graph, Edit(scales=(Scale(kernels(trace, 3, 4), 0.5),))) == pytest.approx(100)


def test_device_catches_up_once_the_host_is_quick() -> None:
    """A 1 ms host bottleneck before 10 kernels of 50 µs: without it the device's 500 µs are what is left."""
    program = Program((Op(us=1000), *(Op(us=5, kernels=((50, 7),)) for _ in range(10))))
    trace = program.record()
    assert_predicts(trace, Edit(removed_ops=ops(trace, 0)), program.without([0]))
    assert saved_us(graph_of(trace), Edit(removed_ops=ops(trace, 0))) == pytest.approx(1000)


def test_a_wait_costs_only_the_idle_time_it_causes() -> None:
    """After a wait the device idles while the host prepares the next kernels, unless there is more work queued."""
    costly = Program((Op(5, ((200, 7),), syncs=True), Op(150, ((200, 7),))))
    trace = costly.record()
    assert saved_us(graph_of(trace), Edit(unsynced=ops(trace, 0))) == pytest.approx(75 + 2.5 + 5, abs=2)
    harmless = Program((Op(5, ((200, 7),)), Op(5, ((2, 20),), syncs=True), Op(150, ((200, 7),))))
    trace = harmless.record()
    assert saved_us(graph_of(trace), Edit(unsynced=ops(trace, 1))) == pytest.approx(0, abs=1)


def test_rows_named_twice_count_once() -> None:
    program = Program(tuple(Op(us=50, kernels=((5, 7),)) for _ in range(4)))
    trace = program.record()
    graph = graph_of(trace)
    outer = trace.rows_named(["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"])
    both = np.concatenate([outer, ops(trace, 0, 1), ops(trace, 0, 1)])
    once = replay(graph, Edit(scales=(Scale(outer, 0.5),))).step_us
    assert replay(graph, Edit(scales=(Scale(both, 0.5),))).step_us == pytest.approx(once)
    halved_twice = Edit(scales=(Scale(kernels(trace, 0), 0.5), Scale(np.repeat(kernels(trace, 0), 2), 0.5)))
    assert replay(graph, halved_twice).step_us <= replay(graph, NOTHING).step_us


def test_loader_beside_the_step() -> None:
    """Loading in workers hides what fits beside the rest of the step, and costs what exceeds it."""

    def saved(load_us: float, compute_us: float) -> tuple[float, float]:
        builder = TraceBuilder()
        for step in range(3):
            with builder.step(step):
                with builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", us=load_us):
                    pass
                builder.leaf("aten::mm", us=compute_us)
        trace = builder.build()
        rows = trace.rows_named(["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"])
        unchanged = replay(graph_of(trace), NOTHING).step_us
        return unchanged, unchanged - saved_us(graph_of(trace), Edit(overlapped=rows))

    assert saved(300, 700) == pytest.approx((1000, 700))
    assert saved(700, 300) == pytest.approx((1000, 700))


def test_backward_on_a_helper_thread() -> None:
    """The main thread waits for the autograd thread: its work is on the critical path, less what is hidden."""
    builder = TraceBuilder()
    for step in range(3):
        with builder.step(step):
            builder.leaf("aten::forward", us=400)
            with builder.frame("<built-in method run_backward>", us=20), builder.thread(2):
                for _ in range(4):
                    builder.leaf("autograd::backward", us=200, kernel="k", kernel_us=5)
    trace = builder.build()
    graph = graph_of(trace)
    assert int((graph.kind == NodeKind.JOIN).sum()) == 3
    assert replay(graph, NOTHING).step_us == pytest.approx(400 + 20 + 4 * 205)
    backward = trace.rows_named(["autograd::backward"])
    assert saved_us(graph, Edit(scales=(Scale(backward, 0.25),))) == pytest.approx(0.75 * 4 * 205)
    assert saved_us(graph, Edit(removed_ops=trace.rows_named(["aten::forward"]))) == pytest.approx(400)
    assert saved_us(graph, Edit(host_factor=0.5)) == pytest.approx((400 + 20 + 4 * 205) / 2)


def test_two_helpers_at_once() -> None:
    """The main thread waits for two communication threads: the later one is on the critical path."""
    builder = TraceBuilder()
    for step in range(3):
        with builder.step(step):
            builder.leaf("aten::forward", us=100)
            start = builder.cursor
            for tid, late, took in ((2, 10, 400), (3, 30, 500)):
                builder.event(Category.USER_ANNOTATION, f"gloo:{tid}", start + late, took, tid=tid)
            builder.host(530)
            builder.leaf("aten::step", us=70)
    trace = builder.build()
    graph = graph_of(trace)
    assert replay(graph, NOTHING).step_us == pytest.approx(700)
    assert saved_us(graph, Edit(scales=(Scale(trace.rows_named(["gloo:2"]), 0.0),))) == pytest.approx(0)
    assert saved_us(graph, Edit(scales=(Scale(trace.rows_named(["gloo:3"]), 0.0),))) == pytest.approx(120)


def test_host_that_runs_ahead() -> None:
    """The host needs 100 µs a step, the device 300, and nothing waits: the device sets the pace."""
    builder = TraceBuilder()
    for step in range(6):
        with builder.step(step):
            for _ in range(10):
                builder.leaf("aten::mm", us=5, kernel="gemm", kernel_us=30)
    trace = builder.build()
    graph = graph_of(trace)
    assert graph.device_paced
    assert replay(graph, NOTHING).step_us == pytest.approx(300)
    assert saved_us(graph, Edit(host_factor=0.5)) == pytest.approx(0)
    assert saved_us(graph, Edit(scales=(Scale(trace.rows(Category.KERNEL), 0.5),))) == pytest.approx(150)
    assert saved_us(graph, Edit(scales=(Scale(trace.rows(Category.KERNEL), 0.1),))) == pytest.approx(200, abs=10)
    assert saved_us(graph, Edit(removed_ops=trace.rows_named(["aten::mm"]))) == pytest.approx(300)


def test_stream_that_waits_for_another() -> None:
    """An all-reduce on its own stream waits for the gradients, and the optimizer for the all-reduce."""
    builder = TraceBuilder()
    for step in range(3):
        with builder.step(step):
            with builder.op("aten::backward", us=5):
                builder.kernel("gradients", us=300)
            builder.launch("cudaStreamWaitEvent", us=1)
            builder.stream_free[20] = builder.stream_free[7]
            with builder.op("c10d::allreduce_", us=5):
                builder.kernel("ncclDevKernel_AllReduce", us=200, stream=20)
            builder.launch("cudaStreamWaitEvent", us=1)
            builder.stream_free[7] = builder.stream_free[20]
            with builder.op("aten::step", us=5):
                builder.kernel("sgd", us=100)
            builder.synchronize()
    trace = builder.build()
    graph = graph_of(trace)
    step_us = replay(graph, NOTHING).step_us
    assert step_us == pytest.approx(600, rel=0.03)
    for name, took in (("gradients", 300), ("ncclDevKernel_AllReduce", 200), ("sgd", 100)):
        assert saved_us(graph, Edit(scales=(Scale(trace.rows_named([name]), 0.0),))) == pytest.approx(took, abs=12)
    everything = Edit(scales=(Scale(trace.rows(Category.KERNEL), 0.0),))
    assert replay(graph, everything).step_us < 60


def test_graph_launch_runs_in_its_stream() -> None:
    """Kernels of a CUDA graph carry the stream of their capture, and run in order with the copies round them."""
    builder = TraceBuilder()
    for step in range(4):
        with builder.step(step):
            with builder.op("aten::copy_", us=5):
                builder.stream_free[7] = max(builder.stream_free.get(7, 0), builder.stream_free.get(164, 0))
                builder.kernel("copy", us=10)
            builder.stream_free[164] = builder.stream_free[7]
            launch = builder.launch("cudaGraphLaunch", us=20)
            for _ in range(20):
                builder.device_work(Category.KERNEL, "fused", us=40, launched=launch, stream=164)
    trace = builder.build()
    graph = graph_of(trace)
    assert graph.device_paced and replay(graph, NOTHING).step_us == pytest.approx(810)
    assert saved_us(graph, Edit(scales=(Scale(trace.rows_named(["fused"]), 0.5),))) == pytest.approx(400)


def test_full_queue_holds_the_host() -> None:
    """A launch that waits for room in the queue is no host work: with a quicker device it is quick."""
    builder = TraceBuilder()
    room = 500
    for step in range(2):
        with builder.step(step):
            ends: list[float] = []
            for k in range(1500):
                until = ends[k - room] if k >= room else 0
                call = builder.launch(us=max(2, until - builder.cursor + 1))
                builder.device_work(Category.KERNEL, "k", us=20, launched=call)
                ends.append(builder.stream_free[7])
            builder.synchronize()
    trace = builder.build()
    graph = graph_of(trace)
    assert int((graph.kind == NodeKind.WAIT).sum()) > 1000
    step_us = replay(graph, NOTHING).step_us
    assert step_us == pytest.approx(1500 * 20, rel=0.01)
    half = Edit(scales=(Scale(trace.rows(Category.KERNEL), 0.5),))
    assert saved_us(graph, half) == pytest.approx(step_us / 2, rel=0.01)
    assert saved_us(graph, Edit(host_factor=0.1)) == pytest.approx(0, abs=10)


# Recorded traces


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_steps_come_out_as_recorded(name: str) -> None:
    timeline = shared_timeline(f"traces/{name}.json.gz")
    graph, steps = timeline.graph, timeline.steps
    replayed = replay(graph, NOTHING).step_us_each
    recorded = (graph.period_ns if graph.device_paced else steps.duration_ns[graph.steps])[graph.is_steady] / 1000
    np.testing.assert_allclose(replayed, recorded, rtol=0.02)


@pytest.mark.parametrize("name", [n for n in RECORDED if not n.startswith(("S12", "S14"))])
def test_the_model_explains_the_steps_without_their_gaps(name: str) -> None:
    graph = shared_timeline(f"traces/{name}.json.gz").graph
    bare = replace(graph, gap_ns=np.zeros_like(graph.gap_ns))
    assert replay(bare, NOTHING).step_us == pytest.approx(replay(graph, NOTHING).step_us, rel=0.02)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_steps_under_edits(name: str) -> None:
    """Less never takes longer; a saving is never more than what was taken away; all of it away leaves nothing."""
    timeline = shared_timeline(f"traces/{name}.json.gz")
    trace, graph = timeline.trace, timeline.graph
    before = replay(graph, NOTHING)
    device, host = trace.rows(*DEVICE_CATEGORIES), trace.rows(*HOST_CATEGORIES)
    in_step = np.isin(timeline.steps.of[device], graph.steps)
    device_us = trace.dur_ns[device[in_step]].sum() / 1000 / len(graph.steps)
    faster = replay(graph, Edit(scales=(Scale(device, 0.5),)))
    assert faster.step_us_each.sum() <= before.step_us_each.sum()
    assert before.step_us - faster.step_us <= 0.55 * device_us
    slower = replay(graph, Edit(scales=(Scale(device, 2.0),)))
    assert slower.step_us_each.sum() >= before.step_us_each.sum()
    twice = replay(graph, Edit(host_factor=0.5, scales=(Scale(device, 0.5),)))
    assert twice.step_us == pytest.approx(before.step_us / 2, rel=0.1)
    everything = replay(graph, Edit(host_factor=0.0, removed_ops=host, scales=(Scale(device, 0.0),)))
    assert everything.step_us < 0.3 * before.step_us


def test_savings_on_recorded_traces() -> None:
    host_bound = shared_timeline("traces/S08_tracelens_vit_h100.json.gz")
    kernels_of = host_bound.trace.rows(Category.KERNEL)
    assert saved_us(host_bound.graph, Edit(scales=(Scale(kernels_of, 0.0),))) == pytest.approx(0, abs=1)
    device_bound = shared_timeline("traces/S06_hta_resnet50_v100_ns.json.gz")
    assert device_bound.graph.device_paced
    assert replay(device_bound.graph, NOTHING).step_us == pytest.approx(95_500, rel=0.01)
    assert saved_us(device_bound.graph, Edit(host_factor=0.5)) == pytest.approx(0, abs=100)
    loader = shared_timeline("traces/S01_kineto_resnet50_w0_v100.json.gz")
    rows = loader.trace.rows_named(["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"])
    without = replay(loader.graph, Edit(overlapped=rows)).step_us
    taken_over = replay(loader.graph, Edit(overlapped=rows, kept_share=0.5)).step_us
    assert without < taken_over < replay(loader.graph, NOTHING).step_us
    four_workers = replay(shared_timeline("traces/S02_kineto_resnet50_w4_v100.json.gz").graph, NOTHING).step_us
    assert without == pytest.approx(four_workers, rel=0.1)


def test_a_trace_without_steps_or_events() -> None:
    graph = graph_of(TraceBuilder().build())
    assert replay(graph, NOTHING).step_us == 0
    assert len(replay(graph, Edit(host_factor=0.5)).step_us_each) == 0


def test_device_events_alone() -> None:
    builder = TraceBuilder()
    for start in range(0, 100, 10):
        builder.event(Category.KERNEL, "k", start, 8, stream=7, device=0)
    trace = builder.build()
    graph = graph_of(trace)
    assert graph.device_paced
    assert replay(graph, NOTHING).step_us > 0
    assert saved_us(graph, Edit(scales=(Scale(np.array([row_of(trace, 0)]), 0.5),))) >= 0


def test_what_most_steps_save_and_another_loses_is_not_saved() -> None:
    b = TraceBuilder(devices=())
    for number in range(4):
        with b.step(number):
            b.leaf("aten::relu", us=50)
    baseline = replay(build_timeline(b.build()).graph, NOTHING)
    moved = per_step_us(np.array([10.0, 10.0, 10.0, -26.0]), baseline, is_periodic=False)
    assert moved == pytest.approx(1.0)
    assert per_step_us(np.array([10.0, 10.0, 10.0, -40.0]), baseline, is_periodic=False) == 0.0
    assert per_step_us(np.array([10.0, 10.0, 10.0, 0.0]), baseline, is_periodic=False) == 10.0
