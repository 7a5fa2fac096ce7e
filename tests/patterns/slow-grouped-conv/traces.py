import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

IMAGE, WEIGHT = (32, 128, 56, 56), (128, 1, 3, 3)
NHWC = (128 * 56 * 56, 1, 128 * 56, 128)
FRAMES = ("train.py(40): main", "net.py(9): forward")
SIZES = ("", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "128")


def _depthwise(b: TraceBuilder, us: float, dtype: str = "c10::Half", groups: str = "128") -> None:
    weight = WEIGHT if groups != "1" else (128, 128, 3, 3)
    for _ in range(4):
        b.leaf(
            "aten::conv2d",
            us=10,
            shapes=(IMAGE, weight),
            strides=(NHWC, (9, 1, 3, 1)),
            types=(dtype, dtype),
            concrete=(*SIZES[:-1], groups),
            kernel="void cudnn::cnn::conv2d_grouped_direct_kernel<__half, __half, float>",
            kernel_us=us,
        )


def positive_recorded_groups_of_six() -> Trace:
    torch = pytest.importorskip("torch")
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(32, 96, 3), nn.Conv2d(96, 96, 3, padding=1, groups=16))
    images = torch.rand(2, 32, 40, 40)

    def step() -> None:
        with torch.no_grad():
            net(images)

    return record(step)


def positive_while_a_dense_convolution_is_held_up() -> Trace:
    """A convolution that waits for its thread says nothing of how fast convolutions are."""
    dense = ((2, 32, 40, 40), (96, 32, 3, 3)), ((51200, 1600, 40, 1), (288, 9, 3, 1))
    grouped = ((2, 96, 38, 38), (96, 6, 3, 3)), ((138624, 1444, 38, 1), (54, 9, 3, 1))

    def body(b: TraceBuilder) -> None:
        for took_us in (2_000, 2_000, 2_000, 60_000):
            _on_cpu(b, took_us, *dense, groups="1")
        _on_cpu(b, 4_000, *grouped, groups="16")

    return on_cpu(body, frames=FRAMES)


def _on_cpu(
    b: TraceBuilder, us: float, shapes: tuple[tuple[int, ...], ...], strides: tuple[tuple[int, ...], ...], groups: str
) -> None:
    types = ("float", "float")
    b.leaf("aten::conv2d", us=us, shapes=shapes, strides=strides, types=types, concrete=(*SIZES[:-1], groups))


def positive_half_precision_in_channels_last() -> Trace:
    return on_device(lambda b: _depthwise(b, 35000), frames=FRAMES)


def negative_recorded_groups_of_eight() -> Trace:
    torch = pytest.importorskip("torch")
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(32, 96, 3), nn.Conv2d(96, 96, 3, padding=1, groups=12))
    images = torch.rand(2, 32, 40, 40)

    def step() -> None:
        with torch.no_grad():
            net(images)

    return record(step)


def negative_recorded_in_channels_last() -> Trace:
    torch = pytest.importorskip("torch")
    nn, layout = torch.nn, torch.channels_last
    net = nn.Sequential(nn.Conv2d(32, 96, 3), nn.Conv2d(96, 96, 3, padding=1, groups=24)).to(memory_format=layout)
    images = torch.rand(2, 32, 40, 40).contiguous(memory_format=layout)

    def step() -> None:
        with torch.no_grad():
            net(images)

    return record(step)


def negative_as_fast_as_memory() -> Trace:
    return on_device(lambda b: _depthwise(b, 90), frames=FRAMES)


def negative_float32() -> Trace:
    return on_device(lambda b: _depthwise(b, 35000, "float"), frames=FRAMES)


def negative_dense() -> Trace:
    return on_device(lambda b: _depthwise(b, 35000, groups="1"), frames=FRAMES)
