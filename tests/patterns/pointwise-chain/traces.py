import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

FRAMES = ("train.py(40): main", "augment.py(9): jitter")
IMAGES = (64, 3, 224, 224)
KERNEL = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"


def _chain(b: TraceBuilder, names: tuple[str, ...], size: tuple[int, ...] = IMAGES) -> None:
    for name in names:
        b.leaf(f"aten::{name}", us=8, kernel=KERNEL, kernel_us=45, shapes=(size, (), ()))


def positive_recorded_colour_transform() -> Trace:
    torch = pytest.importorskip("torch")
    images = torch.rand(16, 3, 128, 128)

    def step() -> None:
        grey = images.mean(1, keepdim=True)
        x = (images - grey) * 1.2 + grey
        (x * 0.9 + 0.05).clamp(0, 1).pow(1.1).sub(0.45).div(0.22)

    return record(step)


def positive_on_a_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        _chain(b, ("mul", "add", "clamp", "pow", "sub", "div"))
        b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=900)

    return on_device(body, frames=FRAMES)


def negative_short_chain() -> Trace:
    """Scale, shift, and an activation."""

    def body(b: TraceBuilder) -> None:
        for _ in range(4):
            b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=200)
            _chain(b, ("mul", "add", "relu"))

    return on_device(body, frames=FRAMES)


def negative_compiled() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.op("Torch-Compiled Region: 0/0", us=30):
            _chain(b, ("mul", "add", "clamp", "pow", "sub", "div"))
        b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=900)

    return on_device(body, frames=FRAMES)


def negative_other_sizes() -> Trace:
    """Every operator works on another tensor."""

    def body(b: TraceBuilder) -> None:
        for width in (16, 24, 32, 40, 48, 56):
            _chain(b, ("mul", "add"), (64, 3, width, width))

    return on_device(body, frames=FRAMES)


def negative_tiny_share() -> Trace:
    def body(b: TraceBuilder) -> None:
        _chain(b, ("mul", "add", "clamp", "pow"))
        b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=60_000)

    return on_device(body, frames=FRAMES)
