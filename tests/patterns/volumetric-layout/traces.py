import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

VOLUME, WEIGHT = (1, 32, 32, 64, 64), (32, 32, 3, 3, 3)
TO_NDHWC = "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true>"
TO_NCDHW = "void cudnn::ops::nhwcToNchwKernel<__half, __half, float, true, false>"
CONV = "sm80_xmma_fprop_implicit_gemm_indexed_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32"


def _net(b: TraceBuilder, *, layout_us: float = 80, between: str = "aten::relu") -> None:
    with b.frame("nn.Module: Net_0"):
        for _ in range(5):
            with (
                b.op("aten::conv3d", shapes=(VOLUME, WEIGHT)),
                b.op("aten::cudnn_convolution", shapes=(VOLUME, WEIGHT)),
            ):
                if layout_us:
                    b.kernel(TO_NDHWC, us=layout_us)
                b.kernel(CONV, us=400)
                if layout_us:
                    b.kernel(TO_NCDHW, us=layout_us)
            b.leaf(between, shapes=(VOLUME,), kernel="vectorized_elementwise_kernel", kernel_us=40)


def positive_transposes_round_convolutions() -> Trace:
    return on_device(_net)


def positive_recorded_upsampling() -> Trace:
    """The decoder of a 3-D U-Net: trilinear upsampling and pooling are what is slow."""
    torch = pytest.importorskip("torch")
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv3d(1, 8, 3, padding=1),
        nn.MaxPool3d(2),
        nn.Upsample(scale_factor=2, mode="trilinear"),
        nn.Conv3d(8, 2, 3),
    )
    volume = torch.rand(2, 1, 16, 24, 24)

    def step() -> None:
        with torch.no_grad():
            net(volume)

    return record(step)


def negative_recorded_in_the_layout() -> Trace:
    torch = pytest.importorskip("torch")
    nn, layout = torch.nn, torch.channels_last_3d
    net = nn.Sequential(nn.Conv3d(4, 8, 3), nn.MaxPool3d(2), nn.Conv3d(8, 8, 3)).to(memory_format=layout)
    volume = torch.rand(1, 4, 12, 24, 24).contiguous(memory_format=layout)

    def step() -> None:
        with torch.no_grad():
            net(volume)

    return record(step)


def negative_recorded_pointwise() -> Trace:
    """1x1x1 convolutions are three times slower in NDHWC on the CPU."""
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Conv3d(16, 32, 1), torch.nn.ReLU(), torch.nn.Conv3d(32, 16, 1))
    volume = torch.rand(1, 16, 8, 24, 24)

    def step() -> None:
        with torch.no_grad():
            net(volume)

    return record(step)


def negative_instance_norm() -> Trace:
    """It turns every tensor back: the layout would cost more than it gains."""
    return on_device(lambda b: _net(b, between="aten::instance_norm"))


def negative_no_transposes() -> Trace:
    return on_device(lambda b: _net(b, layout_us=0))


def negative_strides_not_recorded() -> Trace:
    def body(b: TraceBuilder) -> None:
        b.leaf("aten::conv3d", us=9000, shapes=(VOLUME, WEIGHT))
        b.leaf("aten::max_pool3d", us=9000, shapes=(VOLUME,))

    return on_cpu(body)
