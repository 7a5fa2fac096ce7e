from typing import Any

import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

IMAGE, WEIGHT = (8, 64, 56, 56), (64, 64, 3, 3)
NCHW, NHWC = (64 * 56 * 56, 56 * 56, 56, 1), (64 * 56 * 56, 1, 64 * 56, 64)
FRAMES = ("train.py(40): main", "net.py(9): forward")
CONV = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x64"
COPY = "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda>"
TO_NHWC = "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true>"


def _nets(middle: Any, *, converted: bool = True, after: bool = True) -> Trace:
    """Two convolutions with something between, really run."""
    torch = pytest.importorskip("torch")
    nn = torch.nn
    first, norm, second = nn.Conv2d(8, 32, 3, padding=1), nn.BatchNorm2d(32), nn.Conv2d(32, 32, 3)
    layout = torch.channels_last if converted else torch.contiguous_format
    images = torch.rand(4, 8, 48, 48).contiguous(memory_format=layout)
    for layer in (first, norm, second):
        layer.to(memory_format=layout)

    def step() -> None:
        with torch.no_grad():
            x = norm(middle(first(images)))
            if after:
                second(x)

    return record(step)


def positive_recorded_contiguous() -> Trace:
    return _nets(lambda x: x.contiguous())


def positive_recorded_channel_shuffle() -> Trace:
    def shuffle(x: Any) -> Any:
        b, c, h, w = x.shape
        return x.view(b, 4, c // 4, h, w).transpose(1, 2).reshape(b, c, h, w)

    return _nets(shuffle)


def positive_on_a_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(3):
            b.leaf("aten::conv2d", shapes=(IMAGE, WEIGHT), strides=(NHWC, ()), kernel=CONV, kernel_us=200)
            with b.op("aten::contiguous", shapes=(IMAGE,), strides=(NHWC,)):
                b.leaf("aten::copy_", kernel=COPY, kernel_us=60)
            b.leaf("aten::relu", shapes=(IMAGE,), strides=(NCHW,), kernel="vectorized_elementwise_kernel", kernel_us=30)
            with b.op("aten::conv2d", shapes=(IMAGE, WEIGHT), strides=(NCHW, ())):
                b.kernel(TO_NHWC, us=70)
                b.kernel(CONV, us=200)

    return on_device(body, frames=FRAMES)


def negative_recorded_layout_kept() -> Trace:
    torch = pytest.importorskip("torch")
    return _nets(lambda x: x.contiguous(memory_format=torch.channels_last))


def negative_recorded_nchw_throughout() -> Trace:
    """No layout to break: that is another pattern's."""
    return _nets(lambda x: x.contiguous(), converted=False)


def negative_recorded_at_the_end() -> Trace:
    """No convolution follows."""
    return _nets(lambda x: x.contiguous(), after=False)


def negative_strides_not_recorded() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(3):
            b.leaf("aten::conv2d", shapes=(IMAGE, WEIGHT), kernel=CONV, kernel_us=200)
            b.leaf("aten::contiguous", shapes=(IMAGE,), kernel=COPY, kernel_us=60)

    return on_device(body, frames=FRAMES)
