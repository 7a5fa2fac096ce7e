"""The events of windows, as words and figures in order."""

import subprocess
import sys

import numpy as np
import pytest

from tests.builders import TraceBuilder
from tests.shared import shared_timeline
from torchtraceap.analyzer.detector import vocabulary
from torchtraceap.analyzer.detector.model import Windows
from torchtraceap.analyzer.detector.sequence import CHANNELS, LENGTH, sequences
from torchtraceap.analyzer.detector.windows import cut
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.trace.model import NONE, Category


def whole(timeline):
    """One window that holds everything."""
    trace = timeline.trace
    of = np.zeros(len(trace), dtype=np.int32)
    first, last = np.array([trace.ts_ns.min()]), np.array([trace.end_ns.max()])
    return Windows(first, last, np.zeros(1, np.int32), np.zeros(1, np.int32), ("all",), of)


def read(builder, length=LENGTH):
    """Words of the only window, and its figures by channel."""
    timeline = build_timeline(builder.build())
    told = sequences(timeline, whole(timeline), length)
    count = int((told.token[0] > 0).sum())
    assert not told.token[0, count:].any() and not told.figures[0, count:].any()
    words = [vocabulary.WORDS[token] for token in told.token[0, :count]]
    return words, dict(zip(CHANNELS, told.figures[0, :count].astype(float).T, strict=True))


def linear(builder, us=100):
    half = ["c10::BFloat16"] * 3
    with (
        builder.op("aten::linear", shapes=[(64, 256), (128, 256)], types=half[:2]),
        builder.op("aten::addmm", shapes=[(128,), (64, 256), (256, 128)], types=half),
    ):
        builder.kernel("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_tn", us=us)


def test_device_work_follows_the_operators_that_launched_it():
    builder = TraceBuilder()
    with builder.step(0):
        linear(builder)
        with builder.op("aten::item"), builder.op("aten::_local_scalar_dense"):
            builder.synchronize()
    words, figures = read(builder)
    assert words == [
        "aten::linear",
        "aten::addmm",
        "kernel GEMM_TENSOR_CORE HALF",
        "aten::item",
        "aten::_local_scalar_dense",
        "runtime DeviceSynchronize",
    ]
    assert figures["outer"].tolist() == [1, 0, 0, 1, 0, 0]
    assert figures["half"].tolist() == [1, 1, 1, 0, 0, 0]
    assert figures["tensors"].tolist() == [2, 3, 3, 0, 0, 0]
    assert figures["duration"][2] == pytest.approx(np.log10(101), abs=1 / 16)
    work = np.log10(1 + 2 * 64 * 256 * 128 / 1e6)
    assert figures["work"][2] == pytest.approx(work, abs=1 / 16)
    assert figures["work"][0] == 0  # the work is the inner operator's


def test_repeats_become_one_event():
    builder = TraceBuilder()
    with builder.step(0):
        for _ in range(10):
            with builder.op("aten::mul_", us=20, shapes=[(8, 8)]):
                pass
        with builder.op("aten::mul_", us=20, shapes=[(4, 4)]):
            pass
    words, figures = read(builder)
    assert words == ["aten::mul_", "aten::mul_"]
    assert figures["repeats"].tolist() == [1, 0]
    assert figures["alike"][0] == pytest.approx(np.log10(2), abs=1 / 16)
    assert figures["share"][0] == pytest.approx(10 / 11, abs=1 / 16)
    assert figures["duration"][0] == pytest.approx(np.log10(21), abs=1 / 16)


def test_the_most_telling_stay_in_order_where_there_are_too_many():
    builder = TraceBuilder()
    with builder.step(0):
        for number in range(20):
            with builder.op("aten::add" if number % 2 else "aten::mul", us=5):
                pass
            if number in (3, 12):
                with builder.op("aten::conv2d" if number == 3 else "aten::bmm", us=500):
                    pass
    words, _ = read(builder, length=8)
    assert len(words) == 8
    assert [word for word in words if word in ("aten::conv2d", "aten::bmm")] == ["aten::conv2d", "aten::bmm"]


def test_gaps_and_idle_time():
    builder = TraceBuilder()
    with builder.step(0):
        with builder.op("aten::add"):
            builder.kernel("vectorized_elementwise_kernel", us=5)
        builder.host(1000)
        with builder.op("aten::mul"):
            builder.kernel("vectorized_elementwise_kernel", us=5)
    words, figures = read(builder)
    second = words.index("aten::mul")
    assert figures["gap"][second] == pytest.approx(3, abs=1 / 16)
    assert figures["idle"][second + 1] == pytest.approx(3, abs=1 / 16)
    assert not figures["idle"][:second].any()


def test_layouts_and_alignment():
    builder = TraceBuilder()
    with builder.step(0):
        for stride in ((16 * 64, 1, 16 * 8, 16), (16 * 64, 64, 8, 1)):
            with builder.op("aten::conv2d", shapes=[(2, 16, 8, 8)], strides=[stride], types=["float"]):
                pass
        with builder.op("aten::mm", shapes=[(64, 30), (30, 64)], types=["float", "float"]):
            pass
    _, figures = read(builder)
    assert figures["channels_last"].tolist() == [1, 0, 0]
    assert figures["strided"].tolist() == [1, 0, 0]
    assert figures["unaligned"].tolist() == [0, 0, 1]
    assert figures["shapes"].tolist() == [1, 1, 1]
    assert figures["single"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "name",
    (
        "S02_kineto_resnet50_w4_v100.json.gz",
        "S08_tracelens_vit_h100.json.gz",
        "S12_ao_vit_bf16_compile_a100.json.gz",
        "S14_tracelens_resnet18_gpuonly_mi210.json.gz",
        "S15_dtu_resnet18_cpu.json",
    ),
)
def test_recorded_traces(name):
    timeline = shared_timeline(f"traces/{name}")
    windows = cut(timeline)
    told = sequences(timeline, windows)
    assert told.token.shape == (len(windows), LENGTH)
    assert told.figures.shape == (len(windows), LENGTH, len(CHANNELS))
    assert np.isfinite(told.figures).all() and told.token.max() < vocabulary.SIZE
    assert np.array_equal(told.figures * 8, np.round(told.figures * 8))
    works = np.isin(timeline.trace.cat, (Category.CPU_OP, Category.KERNEL)) & (windows.of != NONE)
    assert told.token[np.unique(windows.of[works]), 0].all()
    assert not told.figures[told.token == vocabulary.PADDING].any()


def test_no_windows():
    timeline = build_timeline(TraceBuilder().build())
    windows = cut(timeline)
    assert sequences(timeline, windows).token.shape == (len(windows), LENGTH)


def test_words_are_the_same_in_every_process():
    code = (
        "from torchtraceap.analyzer.detector import vocabulary as v;"
        "print(v.operator('mine::op'), v.runtime('cudaOdd'), v.operator('OddBackward0'), v.SIZE)"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


@pytest.mark.parametrize(
    ("kind", "name", "word"),
    (
        ("operator", "aten::mm", "aten::mm"),
        ("operator", "autograd::engine::evaluate_function: AddmmBackward0", "backward Addmm"),
        (
            "operator",
            "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
            "torch::autograd::AccumulateGrad",
        ),
        ("operator", "Torch-Compiled Region: 3/1", "Torch-Compiled Region"),
        ("runtime", "hipMemcpyAsync", "runtime MemcpyAsync"),
        ("runtime", "cudaLaunchKernel", ""),
        ("annotation", "Optimizer.step#AdamW.step", "mark optimizer step"),
        ("annotation", "my tag", ""),
        ("frame", "<built-in function print>", "frame print"),
        ("frame", "torch/utils/checkpoint.py(225): forward", "frame checkpoint"),
        ("frame", "nn.Module: Linear_0", ""),
    ),
)
def test_words_of_names(kind, name, word):
    assert vocabulary.WORDS[getattr(vocabulary, kind)(name)] == word
