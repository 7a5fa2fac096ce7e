import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

IMAGE, WEIGHT = (8, 64, 56, 56), (64, 64, 3, 3)
CONV = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x64"
NORM = "void cudnn::bn_fw_inf_1C11_kernel_NCHW<float, float, true, 1>"


def _layers(
    b: TraceBuilder, *, training: bool = False, has_bias: bool = True, device: bool = True, between: str = ""
) -> None:
    bias = (64,) if has_bias else ()
    with b.frame("nn.Module: Net_0"):
        for _ in range(6):
            work = {"kernel": CONV, "kernel_us": 150} if device else {}
            b.leaf("aten::conv2d", us=20 if device else 4000, shapes=(IMAGE, WEIGHT, bias), **work)
            if between:
                b.leaf(between, us=10, shapes=(IMAGE,))
            if training:
                b.leaf("aten::add_", us=3, shapes=((), ()))
            work = {"kernel": NORM, "kernel_us": 60} if device else {}
            norm_inputs = {
                "shapes": (IMAGE, *[(64,)] * 4),
                "concrete": ("",) * 5 + (str(training), "0.1", "1e-05", "True"),
            }
            b.leaf("aten::batch_norm", us=40 if device else 900, **norm_inputs, **work)


def positive_recorded() -> Trace:
    torch = pytest.importorskip("torch")
    nn = torch.nn
    blocks = [nn.Sequential(nn.Conv2d(24, 24, 1, bias=False), nn.BatchNorm2d(24), nn.ReLU()) for _ in range(4)]
    net = nn.Sequential(*blocks).eval()
    images = torch.rand(2, 24, 48, 48)

    def step() -> None:
        with torch.no_grad():
            net(images)

    return record(step)


def positive_convolutions_with_bias_on_a_device() -> Trace:
    return on_device(_layers)


def positive_late_host() -> Trace:
    """Without a bias only the host gains: here it is what the device waits for."""

    def body(b: TraceBuilder) -> None:
        for _ in range(12):
            b.leaf("aten::conv2d", us=30, kernel=CONV, kernel_us=8, shapes=(IMAGE, WEIGHT, ()))
            concrete = ("",) * 5 + ("False", "0.1", "1e-05", "True")
            b.leaf("aten::batch_norm", us=60, kernel=NORM, kernel_us=5, shapes=(IMAGE, *[(64,)] * 4), concrete=concrete)

    return on_device(body)


def negative_recorded_training() -> Trace:
    torch = pytest.importorskip("torch")
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU())
    images = torch.rand(4, 3, 24, 24)
    return record(lambda: net(images).sum().backward())


def negative_recorded_frozen_in_training() -> Trace:
    """Norms in eval mode while the convolutions learn: folding would change what is learnt."""
    torch = pytest.importorskip("torch")
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16).eval(), nn.ReLU())
    images = torch.rand(4, 3, 24, 24)
    return record(lambda: net(images).sum().backward())


def negative_no_bias_and_a_busy_device() -> Trace:
    """A folded bias would be added by a kernel that moves as many bytes."""
    return on_device(lambda b: _layers(b, has_bias=False))


def negative_something_between() -> Trace:
    return on_device(lambda b: _layers(b, between="aten::relu"))


def negative_training_statistics() -> Trace:
    return on_cpu(lambda b: _layers(b, training=True, device=False))
