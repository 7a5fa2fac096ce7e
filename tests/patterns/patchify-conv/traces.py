import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

FRAMES = ("train.py(40): main", "video.py(9): forward")
VIDEO, CUBES = (1, 3, 16, 224, 224), (768, 3, 2, 16, 16)
GEMM = "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT"
NAIVE = "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, true, false, true>"


def _conv3d(b: TraceBuilder, kernel_us: float, stride: str = "[2, 16, 16]", *, host_us: float = 20) -> None:
    concrete = ("", "", "", stride, "[0, 0, 0]", "[1, 1, 1]", "1")
    inputs = {"shapes": (VIDEO, CUBES, (768,), (), (), (), ()), "types": ("c10::BFloat16",) * 3, "concrete": concrete}
    kernel = {"kernel": NAIVE, "kernel_us": kernel_us} if kernel_us else {}
    b.leaf("aten::conv3d", us=host_us, **inputs, **kernel)


def _blocks(b: TraceBuilder, *, us: float = 20, kernel_us: float = 0) -> None:
    shapes = ((768,), (1568, 768), (768, 768))
    for _ in range(6):
        kernel = {"kernel": GEMM, "kernel_us": kernel_us} if kernel_us else {}
        b.leaf("aten::addmm", us=us, shapes=shapes, types=("c10::BFloat16",) * 3, **kernel)


def positive_recorded_windows() -> Trace:
    """As a vision-language model does it: each patch is an image of its own."""
    torch = pytest.importorskip("torch")
    embed = torch.nn.Conv3d(3, 192, kernel_size=(2, 14, 14), stride=(2, 14, 14))
    mix = torch.nn.Linear(192, 192)
    patches = torch.randn(512, 3, 2, 14, 14)

    def step() -> None:
        with torch.no_grad():
            mix(embed(patches).flatten(1))

    return record(step)


def positive_video_embedding_on_a_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        _conv3d(b, 9000)
        _blocks(b, kernel_us=8)

    return on_device(body, frames=FRAMES)


def positive_no_products_to_compare_with() -> Trace:
    return on_device(lambda b: _conv3d(b, 9000), frames=FRAMES)


def negative_recorded_pixel_pairs() -> Trace:
    """2x2 patches of many channels: copying them costs more than the convolution."""
    torch = pytest.importorskip("torch")
    shrink = torch.nn.Conv2d(96, 192, kernel_size=2, stride=2)
    mix = torch.nn.Linear(192, 192)
    maps = torch.randn(1, 96, 56, 56)

    def step() -> None:
        with torch.no_grad():
            mix(shrink(maps).flatten(2).transpose(1, 2))

    return record(step)


def negative_as_fast_as_a_product() -> Trace:
    def body(b: TraceBuilder) -> None:
        _conv3d(b, 12)
        _blocks(b, kernel_us=8)

    return on_device(body, frames=FRAMES)


def negative_overlapping_windows() -> Trace:
    def body(b: TraceBuilder) -> None:
        _conv3d(b, 9000, "[1, 8, 8]")
        _blocks(b, kernel_us=8)

    return on_device(body, frames=FRAMES)


def negative_strides_not_recorded() -> Trace:
    def body(b: TraceBuilder) -> None:
        b.leaf("aten::conv3d", us=9000, shapes=(VIDEO, CUBES, (768,)))
        _blocks(b, us=2000)

    return on_cpu(body, frames=FRAMES)
