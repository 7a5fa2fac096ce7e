import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

FRAMES = ("train.py(40): main", "detr.py(9): forward")
KERNEL = "void at::native::unrolled_elementwise_kernel"


def positive_recorded_sine_encoding() -> Trace:
    torch = pytest.importorskip("torch")
    linear, tokens = torch.nn.Linear(64, 64), torch.rand(2, 64, 64)

    def encoding(length: int, width: int):
        position = torch.arange(length, dtype=torch.float32)[:, None]
        angle = position / 10000 ** (torch.arange(0, width, 2).float() / width)
        return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)

    return record(lambda: linear(tokens + encoding(64, 64)))


def positive_recorded_resized_positions() -> Trace:
    torch = pytest.importorskip("torch")
    table, linear = torch.rand(1, 32, 14, 14), torch.nn.Conv2d(3, 32, 8, stride=8)
    images = torch.rand(2, 3, 160, 160)

    def step() -> None:
        with torch.no_grad():
            linear(images) + torch.nn.functional.interpolate(table, size=(20, 20), mode="bicubic")

    return record(step)


def positive_grids_on_a_device() -> Trace:
    """A dozen launches for every level, the host being late already."""

    def body(b: TraceBuilder) -> None:
        for size in (32, 16, 8):
            values = ("-1", "1", str(size), "6", "0", "", "")
            for _ in range(2):
                b.leaf("aten::linspace", us=15, kernel=KERNEL, kernel_us=3, shapes=((),) * 7, concrete=values)
            lines = ((size,), (size,))
            b.leaf("aten::meshgrid", us=20, shapes=(lines,))
            grid = ((size, size), (size, size))
            b.leaf("aten::stack", us=15, kernel=KERNEL, kernel_us=4, shapes=(grid, ()))
        b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=300, shapes=((2, 64, 32, 32), (64, 64, 3, 3)))

    return on_device(body, frames=FRAMES)


def negative_other_sizes_each_step() -> Trace:
    torch = pytest.importorskip("torch")
    sizes = iter(range(60, 400, 20))

    def step() -> None:
        torch.arange(next(sizes)).float().sin()

    return record(step)


def negative_random_numbers() -> Trace:
    torch = pytest.importorskip("torch")
    return record(lambda: torch.rand(64, 64).sin().cos())


def negative_resized_image() -> Trace:
    """A batch of feature maps is data."""
    torch = pytest.importorskip("torch")
    maps = torch.rand(4, 32, 14, 14)
    return record(lambda: torch.nn.functional.interpolate(maps, size=(20, 20), mode="bicubic"))


def negative_tiny_share() -> Trace:
    def body(b: TraceBuilder) -> None:
        values = ("64", "6", "0", "", "")
        b.leaf("aten::arange", us=5, kernel=KERNEL, kernel_us=2, shapes=((),) * 5, concrete=values)
        b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=50_000)

    return on_device(body, frames=FRAMES)
