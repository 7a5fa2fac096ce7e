"""What holds of all features: names, version, missing values, ranges, and independence of the unit of time."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.builders import TraceBuilder
from tests.patterns.scenes import layer, on_cpu, on_device
from tests.shared import shared_timeline, shared_traces
from torchtraceap.analyzer.detector.features import schema
from torchtraceap.analyzer.detector.features.page import page
from torchtraceap.analyzer.detector.features.view import View
from torchtraceap.analyzer.detector.windows import cut
from torchtraceap.analyzer.timeline.model import Phase
from torchtraceap.analyzer.trace.model import NONE, Category

from .reading import Reading, step_windows

ROOT = Path(__file__).parents[4]


def conv_net(b: TraceBuilder) -> None:
    """A little of everything that runs on a device."""
    b.copy("HtoD (Pageable -> Device)", us=50)
    layer(
        b,
        "aten::conv2d",
        "sm80_xmma_fprop_implicit_gemm_f16f16",
        shapes=[(8, 16, 32, 32), (16, 16, 3, 3), (), (), (), (), ()],
        types=["c10::Half", "c10::Half", "", "ScalarList", "ScalarList", "ScalarList", "Scalar"],
        strides=[(16384, 1024, 32, 1), (144, 9, 3, 1), (), (), (), (), ()],
        concrete=["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"],
    )
    layer(b, "aten::relu_", "vectorized_elementwise_kernel", shapes=[(8, 16, 32, 32)], types=["c10::Half"])
    b.item()


def test_names_are_distinct_and_carry_their_group():
    assert not [name for name, times in Counter(schema.NAMES).items() if times > 1]
    for group in schema.GROUPS:
        prefix = group.__name__.rpartition(".")[2] + "."
        assert all(feature.name.startswith(prefix) for feature in group.FEATURES)
    assert all(feature.unit and feature.why.endswith(".") for feature in schema.FEATURES)


def test_the_page_tells_of_every_feature():
    text = (ROOT / "docs" / "detector-features.md").read_text("utf-8")
    command = (
        "python -c \"from torchtraceap.analyzer.detector.features.page import page; print(page(), end='')\""
        " > docs/detector-features.md"
    )
    assert text == page(), f"the features have changed; write the page anew: {command}"


def test_times_twice_as_long_leave_shares_and_counts_as_they_are():
    trace = on_device(conv_net)
    slower = replace(trace, ts_ns=trace.ts_ns * 2, dur_ns=trace.dur_ns * 2)
    once, twice = Reading(trace), Reading(slower)
    for feature in schema.FEATURES:
        if feature.unit.startswith("%") and feature.name.split(".")[0] not in ("efficiency", "launches"):
            assert once[feature.name] == pytest.approx(twice[feature.name], nan_ok=True, abs=0.2), feature.name
    assert twice["cost.work_time"] - once["cost.work_time"] == pytest.approx(np.log10(2))


def test_without_shapes_only_what_shapes_tell_is_missing():
    trace = on_device(conv_net)
    bare = replace(trace, inputs=np.full(len(trace), NONE, dtype=np.int32), input_table=())
    told, untold = Reading(trace), Reading(bare)
    lost = [n for n in schema.NAMES if np.isfinite(told[n]) and np.isnan(untold[n])]
    kept = [n for n in schema.NAMES if np.isfinite(told[n]) and np.isfinite(untold[n])]
    assert {name.split(".")[0] for name in lost} <= {"efficiency", "convolutions", "attention", "tensors"} | {
        "repetition",
        "transfers",
        "context",
    }
    assert all(np.isnan(untold[n]) for n in schema.NAMES if n.startswith(("efficiency.", "tensors.")))
    assert all(told[n] == pytest.approx(untold[n]) for n in kept)
    assert {"cost.half", "idle.scalar_syncs", "operators.host_scalar_calls", "repetition.longest_run"} <= set(kept)


def test_without_a_device_only_host_figures_are_told():
    def body(b):
        b.leaf("aten::relu", us=50)

    told = Reading(on_cpu(body))
    device_only = ("cost.kernels", "cost.half", "launches.per_ms", "idle.sync", "transfers.htod", "memory.driver_frees")
    assert all(np.isnan(told[name]) for name in device_only)
    assert told["cost.elementwise"] == pytest.approx(100)
    assert told["context.cpu"] == 1


def test_without_frames_memory_and_counters_those_are_missing():
    told = Reading(on_device(conv_net, frames=()))
    for name in schema.NAMES:
        if name.startswith("counters.") or name in ("memory.bytes", "memory.growth", "python.numpy", "python.frames"):
            assert np.isnan(told[name]), name


def test_device_events_alone_tell_of_kernels():
    b = TraceBuilder()
    for number in range(4):
        b.event(Category.KERNEL, "sgemm", 100 * number, 60, tid=7, stream=7, device=0)
        b.event(Category.KERNEL, "nchwToNhwcKernel", 100 * number + 60, 20, tid=7, stream=7, device=0)
    told = Reading(b.build(), cut)
    assert np.isfinite(told.every("cost.gemm")).all()
    assert np.isnan(told.every("operators.calls")).all()
    assert np.isnan(told.every("launches.cost")).all()
    assert np.isnan(told.every("repetition.rounds")).all()
    assert np.isfinite(told.every("repetition.name_rounds")).all()


def test_no_windows_give_no_rows():
    timeline = Reading(on_device(conv_net)).timeline
    windows = step_windows(timeline)
    none = replace(
        windows,
        start_ns=windows.start_ns[:0],
        end_ns=windows.end_ns[:0],
        step=windows.step[:0],
        region=windows.region[:0],
        of=np.full_like(windows.of, NONE),
    )
    assert schema.compute(timeline, none).shape == (0, len(schema.FEATURES))


@pytest.mark.parametrize("name", shared_traces())
def test_every_recorded_trace_gives_finite_values_or_nan(name):
    timeline = shared_timeline(name)
    windows = cut(timeline)
    values = schema.compute(timeline, windows)
    assert values.shape == (len(windows), len(schema.NAMES))
    assert not np.isinf(values).any()
    assert not np.isinf(values.astype(np.float16)).any()
    shares = [k for k, feature in enumerate(schema.FEATURES) if feature.unit.startswith("% of")]
    assert np.nanmin(np.append(values[:, shares], 0.0)) >= -100


def test_groups_answer_alone_as_they_do_together():
    timeline = Reading(on_device(conv_net)).timeline
    windows = step_windows(timeline)
    whole = schema.compute(timeline, windows)
    at = 0
    for group in schema.GROUPS:
        alone = group.compute(View(timeline, windows))  # no window of this trace is of the backward pass
        assert np.array_equal(alone, whole[:, at : at + len(group.FEATURES)], equal_nan=True)
        at += len(group.FEATURES)


def test_the_backward_pass_has_the_convolutions_of_its_forward_window():
    b = TraceBuilder(devices=())
    with b.frame("train.py(1): main"):
        for number in range(4):
            with b.step(number):
                forward = b.leaf(
                    "aten::conv2d",
                    us=100,
                    sequence=number,
                    shapes=[(8, 16, 32, 32), (16, 1, 3, 3)],
                    concrete=["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "16"],
                )
                node = "autograd::engine::evaluate_function: ConvolutionBackward0"
                with b.thread(2), b.op(node, sequence=number) as backward:
                    b.leaf("aten::convolution_backward", us=200)
                b.flow(forward, backward)
    told = Reading(b.build(), halves_at_backward)
    assert told.every("context.backward")[1::2] == pytest.approx(1)
    assert told.every("convolutions.grouped") == pytest.approx(100)


def halves_at_backward(timeline):
    """Two windows a step: the forward and the backward pass."""
    whole = step_windows(timeline)
    late = timeline.phase == Phase.BACKWARD
    return replace(
        whole,
        start_ns=np.repeat(whole.start_ns, 2),
        end_ns=np.repeat(whole.end_ns, 2),
        step=np.repeat(whole.step, 2),
        region=np.tile(np.arange(2, dtype=np.int32), len(whole)),
        of=np.where(whole.of == NONE, NONE, 2 * whole.of + late).astype(np.int32),
    )
