from dataclasses import replace

import numpy as np
import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import A100, TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import MemoryTable, Trace

CONV = "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4_warpsize2x2x1"
WGRAD = "sm80_xmma_wgrad_implicit_gemm_indexed_f32f32_f32f32_f32_nhwckrsc_nhwc_tilesize128x128x16"


def _with_memory(trace: Trace, share: float) -> Trace:
    """The peak of each step is this share of the device's memory."""
    moments = trace.ts_ns[trace.rows_named(("aten::conv2d",))]
    total = A100.total_memory_bytes
    allocated = np.full(len(moments), int(share * total))
    zeros = np.zeros(len(moments), dtype=np.int64)
    return replace(trace, memory=MemoryTable(moments, zeros, zeros, zeros.astype(np.int32), allocated, allocated))


def _checkpointed(b: TraceBuilder) -> None:
    numbers = iter(range(getattr(b, "numbers", 0), 10**6))
    for _ in range(8):
        with b.frame("torch/utils/checkpoint.py(343): checkpoint"):
            b.leaf("aten::conv2d", us=40, kernel=CONV, kernel_us=300)
    with b.thread(2):
        for _ in range(8):
            number = next(numbers)
            with b.op("autograd::engine::evaluate_function: ConvolutionBackward0", us=10, sequence=number):
                with b.frame("torch/utils/checkpoint.py(1500): recompute_fn"):
                    b.leaf("aten::conv2d", us=40, kernel=CONV, kernel_us=300, sequence=next(numbers))
                b.leaf("ConvolutionBackward0", us=40, kernel=WGRAD, kernel_us=600, sequence=number)
    b.numbers = next(numbers)  # type: ignore[attr-defined]


def positive_memory_half_empty() -> Trace:
    return _with_memory(on_device(_checkpointed), 0.3)


def positive_without_stacks() -> Trace:
    return _with_memory(on_device(_checkpointed, frames=()), 0.45)


def negative_memory_in_use() -> Trace:
    return _with_memory(on_device(_checkpointed), 0.8)


def _recorded(step) -> Trace:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    stages = [torch.nn.Sequential(torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.ReLU()) for _ in range(8)]
    net, images = torch.nn.Sequential(*stages), torch.rand(4, 8, 64, 64)
    return record(lambda: step(torch, net, images))


def negative_recorded_where_memory_is_unknown() -> Trace:
    """Layers are computed twice, and nothing says whether there was memory to keep them: a hint."""

    def step(torch, net, images) -> None:
        from torch.utils.checkpoint import checkpoint_sequential

        checkpoint_sequential(net, 4, images, use_reentrant=False).square().mean().backward()

    return _recorded(step)


def negative_recorded_double_backward() -> Trace:
    """A gradient penalty: the backward pass itself is recorded for another one, nothing is computed twice."""

    def step(torch, net, images) -> None:
        inputs = images.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(net(inputs).sum(), inputs, create_graph=True)
        gradient.square().mean().backward()

    return _recorded(step)
