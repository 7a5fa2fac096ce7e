import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Dims, Trace

FRAMES = ("train.py(40): main", "slowfast.py(9): forward")
CONV = "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16"


def _conv(b: TraceBuilder, data: Dims, weight: Dims, us: float, padding: str = "[0, 1, 1]") -> None:
    concrete = ("", "", "", "[1, 1, 1]", padding, "[1, 1, 1]", "1")
    types = ("float", "float")
    b.leaf("aten::conv3d", us=10, shapes=(data, weight), types=types, concrete=concrete, kernel=CONV, kernel_us=us)


def positive_recorded_thin_fast_pathway() -> Trace:
    """The fast pathway: eight times the frames, an eighth of the channels."""
    torch = pytest.importorskip("torch")
    nn = torch.nn
    slow = [nn.Conv3d(48, 48, (1, 3, 3), padding=(0, 1, 1)) for _ in range(3)]
    fast = [nn.Conv3d(6, 6, (1, 3, 3), padding=(0, 1, 1)) for _ in range(3)]
    few, many = torch.rand(1, 48, 3, 20, 20), torch.rand(1, 6, 24, 40, 40)

    def step() -> None:
        with torch.no_grad():
            a, b = few, many
            for wide, thin in zip(slow, fast, strict=True):
                a, b = wide(a).relu(), thin(b).relu()

    return record(step)


def positive_temporal_kernels_on_a_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(4):
            _conv(b, (8, 64, 16, 56, 56), (64, 64, 1, 3, 3), 900)
            _conv(b, (8, 64, 16, 56, 56), (64, 64, 3, 1, 1), 1500, "[1, 0, 0]")

    return on_device(body, frames=FRAMES)


def negative_recorded_balanced() -> Trace:
    torch = pytest.importorskip("torch")
    nn = torch.nn
    blocks = [
        nn.Sequential(nn.Conv3d(16, 16, (1, 3, 3)), nn.ReLU(), nn.Conv3d(16, 16, 3, padding=(1, 0, 0)))
        for _ in range(3)
    ]
    net = nn.Sequential(*blocks)
    clip = torch.rand(2, 16, 6, 28, 28)

    def step() -> None:
        with torch.no_grad():
            net(clip)

    return record(step)


def negative_time_as_work() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(4):
            _conv(b, (8, 64, 16, 56, 56), (64, 64, 1, 3, 3), 900)
            _conv(b, (8, 64, 16, 56, 56), (64, 64, 3, 1, 1), 350, "[1, 0, 0]")

    return on_device(body, frames=FRAMES)


def negative_pointwise() -> Trace:
    """1x1x1 convolutions move as many bytes for a ninth of the work."""

    def body(b: TraceBuilder) -> None:
        for _ in range(4):
            _conv(b, (8, 64, 16, 56, 56), (64, 64, 1, 3, 3), 900)
            _conv(b, (8, 64, 16, 56, 56), (64, 64, 1, 1, 1), 700, "[0, 0, 0]")

    return on_device(body, frames=FRAMES)


def negative_two_dimensions() -> Trace:
    def body(b: TraceBuilder) -> None:
        sizes = ("", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1")
        for weight, us in (((64, 64, 3, 1), 1500), ((64, 64, 3, 3), 300)):
            b.leaf("aten::conv2d", shapes=((8, 64, 56, 56), weight), concrete=sizes, kernel=CONV, kernel_us=us)

    return on_device(body, frames=FRAMES)


def negative_frames_that_shrink() -> Trace:
    """One net whose stride in time halves the frames: not two pathways."""

    def body(b: TraceBuilder) -> None:
        for _ in range(3):
            _conv(b, (8, 8, 32, 56, 56), (8, 8, 3, 3, 3), 700, "[1, 1, 1]")
        for _ in range(3):
            _conv(b, (8, 64, 16, 28, 28), (64, 64, 3, 3, 3), 900, "[1, 1, 1]")

    return on_device(body, frames=FRAMES)
