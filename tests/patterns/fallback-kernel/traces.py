import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import DeviceProperties, Trace

IMAGE, WEIGHT = (4, 64, 56, 56), (64, 64, 3, 3)
MI210 = DeviceProperties(0, "AMD Instinct MI210", 64 << 30, 9, 0, 104, 64)
FRAMES = ("train.py(40): main", "net.py(9): forward")
SIZES = ("", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1")


def positive_recorded_float64() -> Trace:
    torch = pytest.importorskip("torch")
    conv = torch.nn.Conv2d(16, 16, 3, dilation=2).double()
    images = torch.rand(2, 16, 48, 48, dtype=torch.float64)

    def step() -> None:
        with torch.no_grad():
            conv(images)

    return record(step)


def positive_recorded_without_the_library() -> Trace:
    torch = pytest.importorskip("torch")
    conv, mix = torch.nn.Conv2d(4, 1, 7), torch.nn.Linear(256, 256)
    images, rows = torch.rand(2, 4, 128, 128), torch.rand(256, 256)

    def step() -> None:
        with torch.no_grad(), torch.backends.mkldnn.flags(enabled=False):
            conv(images)
        with torch.no_grad():
            mix(rows)

    return record(step)


def positive_while_a_product_is_held_up() -> Trace:
    """A product that waits for its thread says nothing of how fast products are."""
    inner, types = ("", "", "", "[1, 1]", "[1, 1]"), ("float", "float")

    def body(b: TraceBuilder) -> None:
        for took_us in (350, 350, 350, 60_000):
            b.leaf("aten::mm", us=took_us, shapes=((256, 256), (256, 256)), types=types)
        with b.op("aten::conv2d", us=8, shapes=(IMAGE, WEIGHT), types=types, concrete=SIZES):
            b.leaf("aten::_slow_conv2d_forward", us=120_000, shapes=(IMAGE, WEIGHT), types=types, concrete=inner)

    return on_cpu(body, frames=FRAMES)


def positive_recorded_single_volume() -> Trace:
    """PyTorch judges a volume's size without its last axis, and keeps this one from oneDNN."""
    torch = pytest.importorskip("torch")
    conv = torch.nn.Conv3d(8, 4, 3)
    volume = torch.rand(1, 8, 12, 24, 48)
    square = torch.rand(256, 256)  # the product says what this machine can do, however fast it is

    def step() -> None:
        with torch.no_grad():
            conv(volume)
            square @ square

    return record(step)


def negative_recorded_two_volumes() -> Trace:
    torch = pytest.importorskip("torch")
    conv = torch.nn.Conv3d(8, 4, 3)
    volumes = torch.rand(2, 8, 12, 24, 24)

    def step() -> None:
        with torch.no_grad():
            conv(volumes)

    return record(step)


def positive_plain_loops_of_miopen() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(4):
            with b.op("aten::conv2d", us=8, shapes=(IMAGE, WEIGHT), types=("float", "float"), concrete=SIZES):
                b.leaf("aten::miopen_convolution", kernel="naive_conv_nonpacked_fwd_nchw_float", kernel_us=3000)

    return on_device(body, device=MI210, frames=FRAMES)


def positive_bfloat16_on_a_cpu_without_it() -> Trace:
    def body(b: TraceBuilder) -> None:
        types = ("c10::BFloat16", "c10::BFloat16")
        with b.op("aten::conv2d", us=8, shapes=(IMAGE, WEIGHT), types=types, concrete=SIZES):
            inner = ("", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1")
            b.leaf("aten::mkldnn_convolution", us=467000, shapes=(IMAGE, WEIGHT), types=types, concrete=inner)

    return on_cpu(body, frames=FRAMES)


def negative_recorded_pointwise() -> Trace:
    """One thread: PyTorch hands 1x1 convolutions to a matrix product on purpose."""
    torch = pytest.importorskip("torch")
    conv = torch.nn.Conv2d(64, 64, 1)
    images = torch.rand(1, 64, 56, 56)

    def step() -> None:
        with torch.no_grad():
            conv(images)

    return record(step)


def negative_recorded_library() -> Trace:
    torch = pytest.importorskip("torch")
    conv = torch.nn.Conv2d(16, 16, 3, dilation=2)
    images = torch.rand(2, 16, 48, 48)

    def step() -> None:
        with torch.no_grad():
            conv(images)

    return record(step)


def negative_bfloat16_on_a_cpu_that_has_it() -> Trace:
    def body(b: TraceBuilder) -> None:
        types = ("c10::BFloat16", "c10::BFloat16")
        b.leaf("aten::conv2d", us=4000, shapes=(IMAGE, WEIGHT), types=types, concrete=SIZES)

    return on_cpu(body, frames=FRAMES)
