import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, layer, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

FRAMES = ("train.py(40): main", "net.py(9): forward")
COPY = "void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda>"
CONV = "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32"
SHAPE = (8, 64, 128, 128)


def _clone(b: TraceBuilder, name: str = "aten::clone", *, us: float = 4, kernel: str = COPY) -> None:
    with b.op(name, us=4, shapes=(SHAPE, ()), types=("float", "Scalar")):
        b.leaf("aten::copy_", us=us, kernel=kernel, kernel_us=400)


def positive_recorded_clone() -> Trace:
    torch = pytest.importorskip("torch")
    images = torch.rand(8, 16, 64, 64)

    def step() -> None:
        base = images.detach().clone()
        (base - base.mean()).square().sum()

    return record(step)


def positive_on_a_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        layer(b, "aten::conv2d", CONV, kernel_us=3000)
        _clone(b)
        layer(b, "aten::mul", "vectorized_elementwise_kernel", kernel_us=400)

    return on_device(body, frames=FRAMES)


def positive_recorded_part_of_a_copy() -> Trace:
    torch = pytest.importorskip("torch")
    maps = torch.rand(8, 64, 48, 48)
    return record(lambda: maps.permute(0, 2, 3, 1).contiguous()[:, 0].sum())


def negative_copies_inside_operators() -> Trace:
    """What `reshape` copies for itself, and the backward pass: a near miss."""

    def body(b: TraceBuilder) -> None:
        layer(b, "aten::conv2d", CONV, kernel_us=3000)
        with b.op("aten::reshape", us=4):
            _clone(b)
        with b.annotation("Optimizer.step#EMA.step"):
            _clone(b)

    return on_device(body, frames=FRAMES)


def negative_nothing_copied() -> Trace:
    """`.cpu()`, `.to(...)` and `.contiguous()` of what is there already."""
    torch = pytest.importorskip("torch")
    images = torch.rand(8, 16, 64, 64)
    return record(lambda: images.cpu().to("cpu").contiguous()[:, 0].sum() + images.square().sum())


def negative_whole_copy_is_used() -> Trace:
    torch = pytest.importorskip("torch")
    maps = torch.rand(8, 64, 48, 48)
    return record(lambda: maps.permute(0, 2, 3, 1).contiguous().view(8, -1).softmax(-1))


def negative_small_share() -> Trace:
    def body(b: TraceBuilder) -> None:
        b.leaf("aten::conv2d", us=9000)
        _clone(b, us=2, kernel="")

    return on_cpu(body, frames=FRAMES)
