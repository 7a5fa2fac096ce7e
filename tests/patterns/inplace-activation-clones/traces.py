import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

IMAGE = (8, 64, 80, 80)
FRAMES = ("train.py(40): main", "yolo.py(9): forward", "nn.Module: SiLU_0")


def _activation(b: TraceBuilder, name: str = "aten::silu_", *, clones: bool = True, device: bool = True) -> None:
    with b.op(name, us=10 if device else 900, shapes=(IMAGE,), sequence=1):
        if clones:
            with b.op("aten::clone", us=5, shapes=(IMAGE, ()), sequence=2):
                b.leaf("aten::empty_strided", us=3)
                with b.op("aten::copy_", us=5 if device else 700, shapes=(IMAGE, IMAGE, ())):
                    if device:
                        b.copy("DtoD (Device -> Device)", us=90, size_bytes=4 * 8 * 64 * 80 * 80)
        if device:
            b.kernel("void at::native::vectorized_elementwise_kernel<4, at::native::silu_kernel>", us=90)


def _block(b: TraceBuilder, **kinds: object) -> None:
    b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=400, shapes=(IMAGE, (64, 64, 3, 3)))
    _activation(b, **kinds)  # pyright: ignore[reportArgumentType]


def positive_detector_on_a_device() -> Trace:
    return on_device(lambda b: [_block(b) for _ in range(8)] and None, frames=FRAMES)


def positive_clone_beside_the_operator() -> Trace:
    """As reports show it where the operators' nesting was not recorded."""

    def body(b: TraceBuilder) -> None:
        b.leaf("aten::conv2d", us=2000)
        with b.frame("<built-in function hardswish_>"):
            b.leaf("aten::clone", us=700, shapes=(IMAGE, ()))
            b.leaf("aten::hardswish_", us=800, shapes=(IMAGE,))

    return on_cpu(body, frames=FRAMES)


def positive_recorded_conv_silu() -> Trace:
    torch = pytest.importorskip("torch")
    conv = torch.nn.Conv2d(4, 32, 1)
    act = torch.nn.Hardswish(inplace=True)
    images = torch.rand(4, 4, 64, 64)
    return record(lambda: act(conv(images)).sum().backward())


def negative_recorded_relu() -> Trace:
    torch = pytest.importorskip("torch")
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(4, 32, 1), nn.ReLU(inplace=True), nn.Conv2d(32, 32, 1), nn.LeakyReLU(inplace=True))
    images = torch.rand(4, 4, 64, 64)
    return record(lambda: net(images).sum().backward())


def negative_recorded_inference() -> Trace:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Conv2d(4, 32, 1), torch.nn.SiLU(inplace=True))
    images = torch.rand(4, 4, 64, 64)

    def step() -> None:
        with torch.no_grad():
            net(images)

    return record(step)


def negative_tiny_share() -> Trace:
    def body(b: TraceBuilder) -> None:
        b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=40_000)
        _activation(b)

    return on_device(body, frames=FRAMES)


def negative_clone_of_another_tensor() -> Trace:
    def body(b: TraceBuilder) -> None:
        b.leaf("aten::clone", us=700, shapes=((8, 64), ()))
        _activation(b, clones=False, device=False)

    return on_cpu(body, frames=FRAMES)
