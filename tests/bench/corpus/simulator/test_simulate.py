"""Simulated traces: whole, consistent, and as real devices behave."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from bench.corpus.boxes import nms
from bench.corpus.simulator import DEVICES, JobSettings, simulate
from torchtraceap.analyzer.timeline.kernel_names import Precision, decode
from torchtraceap.analyzer.timeline.model import IdleCause, KernelClass, Phase, Timeline
from torchtraceap.analyzer.trace.model import DEVICE_CATEGORIES, NONE, Category

from .conftest import Recorded, run, timeline_of

CONVOLUTION = (KernelClass.CONV_TENSOR_CORE, KernelClass.CONV_SIMT)


def kernels_of(timeline: Timeline, operator: str) -> list[str]:
    """The names of the kernels that operators of this name launched."""
    trace = timeline.trace
    rows = trace.rows(Category.KERNEL)
    return [trace.name_of(row) for row in rows.tolist() if trace.name_of(int(timeline.launches.op[row])) == operator]


def class_us(timeline: Timeline, *kinds: KernelClass) -> float:
    """Device time of some classes."""
    rows = timeline.trace.rows(Category.KERNEL)
    return float(timeline.trace.dur_ns[rows][np.isin(timeline.kernel_class[rows], kinds)].sum()) / 1e3


@pytest.mark.parametrize("device", DEVICES)
def test_reads_without_problems_and_names_the_device(
    device: str, convolutions: Recorded, attention: Recorded, tmp_path: Path
) -> None:
    for recorded in (convolutions, attention):
        timeline = run(recorded, device, tmp_path)
        assert timeline.trace.problems == ()
        assert timeline.device.memory_gb_per_s > 0
        assert timeline.breakdown.kernels_per_step > 30
        assert len(timeline.steps) == 3


def test_work_of_a_stream_never_overlaps(convolutions: Recorded, tmp_path: Path) -> None:
    trace = run(convolutions, "A100", tmp_path).trace
    rows = trace.rows(*DEVICE_CATEGORIES)
    assert len(set(trace.stream[rows].tolist())) == 2
    for stream in set(trace.stream[rows].tolist()):
        its = rows[trace.stream[rows] == stream]
        its = its[np.argsort(trace.ts_ns[its])]
        assert (trace.ts_ns[its][1:] >= trace.end_ns[its][:-1]).all()


def test_calls_of_a_thread_nest(attention: Recorded, tmp_path: Path) -> None:
    trace = run(attention, "H100 SXM", tmp_path).trace
    rows = trace.rows(Category.CPU_OP, Category.RUNTIME, Category.PYTHON_FUNCTION)
    for thread in set(trace.thread[rows].tolist()):
        its = rows[trace.thread[rows] == thread]
        its = its[np.lexsort((-trace.dur_ns[its], trace.ts_ns[its]))]
        ends: list[int] = []
        for start, end in zip(trace.ts_ns[its].tolist(), trace.end_ns[its].tolist(), strict=True):
            while ends and ends[-1] <= start:
                ends.pop()
            assert not ends or end <= ends[-1] + 2, "ends after what it began in"
            ends.append(end)


def test_every_launch_has_its_kernel_and_operator(convolutions: Recorded, tmp_path: Path) -> None:
    timeline = run(convolutions, "MI300X", tmp_path)
    trace = timeline.trace
    rows = trace.rows(*DEVICE_CATEGORIES)
    assert (timeline.launches.runtime[rows] != NONE).all()
    assert (timeline.launches.op[rows] != NONE).all()
    launching = [row for row in trace.rows(Category.RUNTIME).tolist() if "Launch" in trace.name_of(row)]
    assert all(len(timeline.launches.devices_of(row)) == 1 for row in launching)
    assert (trace.ts_ns[rows] > trace.ts_ns[timeline.launches.runtime[rows]]).all()


def test_backward_runs_on_its_own_thread_and_knows_its_forward(convolutions: Recorded, tmp_path: Path) -> None:
    timeline = run(convolutions, "A100", tmp_path)
    trace = timeline.trace
    rows = [row for row in trace.rows(Category.CPU_OP).tolist() if trace.name_of(row) == "aten::convolution_backward"]
    forward = [row for row in trace.rows(Category.CPU_OP).tolist() if trace.name_of(row) == "aten::conv2d"]
    assert not set(trace.thread[rows].tolist()) & set(trace.thread[forward].tolist())
    assert all(timeline.forward_op[row] != NONE for row in rows)
    assert set(timeline.phase[rows].tolist()) == {Phase.BACKWARD}


def test_same_seed_same_trace(attention: Recorded) -> None:
    first, again, other = (simulate(attention.document, "T4", attention.settings, seed) for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_twice_the_batch_takes_about_twice_the_time(convolutions: Recorded, tmp_path: Path) -> None:
    time = {
        times: class_us(
            run(convolutions, "T4", tmp_path, replace(convolutions.settings, batch_multiplier=times)), *CONVOLUTION
        )
        for times in (64, 128)
    }
    assert 1.6 < time[128] / time[64] < 2.3


def test_the_batch_is_multiplied_in_shapes_but_not_in_parameters(convolutions: Recorded, tmp_path: Path) -> None:
    settings = replace(convolutions.settings, batch_multiplier=4)
    timeline = run(convolutions, "T4", tmp_path, settings)
    trace = timeline.trace
    shapes = Counter(
        (trace.inputs_of(row).shape(0), trace.inputs_of(row).shape(1))
        for row in trace.rows(Category.CPU_OP).tolist()
        if trace.name_of(row) == "aten::_convolution"
    )
    assert set(shapes) == {((20, 3, 32, 32), (64, 3, 7, 7)), ((20, 64, 8, 8), (64, 64, 3, 3))}
    products = {
        trace.inputs_of(row).dims[:2]
        for row in trace.rows(Category.CPU_OP).tolist()
        if trace.name_of(row) == "aten::mm"
    }
    assert ((16, 20), (20, 64)) in products, "the gradient of a weight sums over the batch"


def test_a_batch_that_is_not_multiplied_is_the_same_on_every_device(convolutions: Recorded, tmp_path: Path) -> None:
    settings = replace(convolutions.settings, batch_multiplier=1)
    trace = run(convolutions, "H100 SXM", tmp_path, settings).trace
    row = next(row for row in trace.rows(Category.CPU_OP).tolist() if trace.name_of(row) == "aten::_convolution")
    assert trace.inputs_of(row).shape(0) == (5, 3, 32, 32)


def test_the_host_waits_for_scalars_and_for_how_much_a_mask_picks(attention: Recorded, tmp_path: Path) -> None:
    timeline = run(attention, "T4", tmp_path)
    trace = timeline.trace
    copies = [row for row in trace.rows(Category.MEMCPY).tolist() if "DtoH" in trace.name_of(row)]
    operators = timeline.launches.op[copies]
    assert Counter(trace.name_of(row) for row in operators.tolist()) == {
        "aten::_local_scalar_dense": 3,
        "aten::nonzero": 3,
    }
    assert (trace.end_ns[operators] > trace.end_ns[copies]).all()


def test_host_tensors_and_optimizer_counters_launch_nothing(attention: Recorded, tmp_path: Path) -> None:
    timeline = run(attention, "A100", tmp_path)
    trace = timeline.trace
    launchers = {trace.name_of(int(timeline.launches.op[row])) for row in trace.rows(*DEVICE_CATEGORIES).tolist()}
    items = [row for row in trace.rows(Category.CPU_OP).tolist() if trace.name_of(row) == "aten::item"]
    assert len(items) > 10, "the optimizer reads its counters"
    on_host = [
        row
        for row in trace.rows(Category.CPU_OP).tolist()
        if trace.name_of(row) == "aten::add" and trace.inputs_of(row).shape(0) == (64,)
    ]
    assert len(on_host) == 3
    assert not set(on_host) & set(timeline.launches.op[trace.rows(*DEVICE_CATEGORIES)].tolist())
    assert "aten::_foreach_addcmul_" in launchers


def test_many_tensors_are_updated_by_few_kernels(convolutions: Recorded, tmp_path: Path) -> None:
    timeline = run(convolutions, "A100", tmp_path)
    updates = kernels_of(timeline, "aten::_foreach_addcdiv_")
    assert len(updates) == 3
    assert {decode(name).kernel_class for name in updates} == {KernelClass.OPTIMIZER}


def test_gradients_are_reduced_beside_backward(convolutions: Recorded, tmp_path: Path) -> None:
    timeline = run(convolutions, "A100", tmp_path)
    trace = timeline.trace
    rows = trace.rows(Category.KERNEL)
    exchanges = rows[timeline.kernel_class[rows] == KernelClass.COMMUNICATION]
    assert len(exchanges) >= 3
    assert len({int(one.group_size) for one in trace.collectives}) == 1
    others = rows[timeline.kernel_class[rows] != KernelClass.COMMUNICATION]
    optimizer = others[timeline.kernel_class[others] == KernelClass.OPTIMIZER]
    for step in range(3):
        ends = trace.end_ns[exchanges[timeline.steps.of[exchanges] == step]].max()
        assert trace.ts_ns[optimizer[timeline.steps.of[optimizer] == step]].min() >= ends


def test_acts_wait_free_and_copy(inference: Recorded, tmp_path: Path) -> None:
    timeline = run(inference, "A100", tmp_path)
    trace = timeline.trace
    calls = Counter(trace.name_of(row) for row in trace.rows(Category.RUNTIME).tolist())
    assert calls["cudaDeviceSynchronize"] == 6
    assert calls["cudaFree"] >= 3
    assert calls["cudaMalloc"] >= 3
    copies = [trace.name_of(row) for row in trace.rows(Category.MEMCPY).tolist()]
    assert sum("DtoH" in name for name in copies) == 3
    assert sum("HtoD" in name for name in copies) >= 3


def test_a_small_batch_is_bound_by_the_host_and_a_large_one_is_not(convolutions: Recorded, tmp_path: Path) -> None:
    small = run(convolutions, "A100", tmp_path, replace(convolutions.settings, batch_multiplier=1))
    large = run(convolutions, "T4", tmp_path, replace(convolutions.settings, batch_multiplier=512))
    assert small.breakdown.idle_by_cause_pct[IdleCause.HOST_BOUND] > 60
    assert large.breakdown.step_idle_pct < 30
    assert large.breakdown.device_step_us > 1.5 * small.breakdown.device_step_us


def test_half_precision_channels_first_is_transposed(inference: Recorded, tmp_path: Path) -> None:
    channels_first = replace(inference, document=_without_channels_last(inference.document))
    plain = run(inference, "A100", tmp_path)
    transposed = run(channels_first, "A100", tmp_path)
    assert class_us(plain, KernelClass.LAYOUT) == 0
    assert class_us(transposed, KernelClass.LAYOUT) > 0


@pytest.mark.parametrize(("tf32", "precision"), [(True, Precision.TF32), (False, Precision.FP32)])
def test_tf32_is_a_setting(tf32: bool, precision: Precision, inference: Recorded, tmp_path: Path) -> None:
    document = inference.document.replace(b'"c10::BFloat16"', b'"float"')
    timeline = run(replace(inference, document=document), "A100", tmp_path, replace(inference.settings, tf32=tf32))
    names = kernels_of(timeline, "aten::cudnn_convolution")
    assert {decode(name).precision for name in names} == {precision}


def test_attention_runs_the_kernel_that_the_device_has(attention: Recorded, tmp_path: Path) -> None:
    for device, word in (("A100", "flash_fwd"), ("V100", "fmha_cutlassF_f16"), ("MI300X", "attn_fwd")):
        timeline = run(attention, device, tmp_path)
        rows = timeline.trace.rows(Category.KERNEL)
        fused = [timeline.trace.name_of(row) for row in rows[timeline.kernel_class[rows] == KernelClass.ATTENTION]]
        assert any(word in name for name in fused)


def test_suppression_of_boxes_runs_on_the_device_and_is_waited_for(tmp_path: Path) -> None:
    boxes, scores = torch.rand(200, 4), torch.rand(200)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recording:
        nms(boxes, scores, 0.5)
    path = tmp_path / "recorded.json"
    recording.export_chrome_trace(str(path))
    timeline = timeline_of(simulate(path.read_bytes(), "A100", JobSettings(), 1), tmp_path)
    assert any("nms_kernel" in name for name in kernels_of(timeline, "torchvision::nms"))
    calls = [timeline.trace.name_of(row) for row in timeline.trace.rows(Category.RUNTIME).tolist()]
    assert calls.count("cudaStreamSynchronize") == 1


def test_unknown_devices_and_other_files_are_refused(attention: Recorded) -> None:
    with pytest.raises(ValueError, match="unknown device"):
        simulate(attention.document, "Voodoo 2", attention.settings, 1)
    with pytest.raises(msgspec.DecodeError):
        simulate(b"no trace", "A100", attention.settings, 1)
    with pytest.raises(ValueError, match="no host events"):
        simulate(b'{"traceEvents": []}', "A100", attention.settings, 1)


def _without_channels_last(document: bytes) -> bytes:
    """The same run with all tensors of four axes contiguous."""
    content = msgspec.json.decode(document)
    for event in content["traceEvents"]:
        args = event.get("args", {})
        for sizes, strides in zip(args.get("Input Dims", ()), args.get("Input Strides", ()), strict=False):
            if len(sizes) == 4 and isinstance(sizes[0], int):
                strides[:] = [sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1]
    return msgspec.json.encode(content)
