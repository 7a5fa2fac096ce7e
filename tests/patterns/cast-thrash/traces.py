import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, layer, on_device
from torchtraceap.analyzer.trace.model import Trace

FRAMES = ("train.py(40): main", "net.py(9): forward")
COPY = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>"
GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"
TOKENS, WEIGHT = (8, 197, 768), (3072, 768)
BF16, FP32 = "c10::BFloat16", "float"


def _cast(b: TraceBuilder, shape: tuple[int, ...], source: str, target: str, us: float = 15) -> None:
    with b.op("aten::to", us=3, shapes=(shape,), types=(source,)), b.op("aten::_to_copy", us=3):
        b.leaf("aten::copy_", us=6, kernel=COPY, kernel_us=us, shapes=(shape, shape), types=(target, source))


def _linear(b: TraceBuilder, *, casts: bool) -> None:
    inner = FP32 if casts else BF16
    with b.op("aten::linear", us=10, shapes=(TOKENS, WEIGHT, (3072,)), types=(BF16, inner, inner)):
        if casts:
            _cast(b, (3072,), FP32, BF16, us=2)
            _cast(b, WEIGHT, FP32, BF16)
        layer(b, "aten::addmm", GEMM, kernel_us=60, types=(BF16, BF16, BF16))


def positive_recorded_frozen_weights() -> Trace:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).eval()
    x = torch.randn(2, 512)

    def step() -> None:
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
            for _ in range(3):
                net(x)

    return record(step)


def positive_weights_on_a_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(12):
            _linear(b, casts=True)

    return on_device(body, frames=FRAMES)


def positive_there_and_back() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(6):
            _linear(b, casts=False)
            _cast(b, TOKENS, BF16, FP32)
            layer(b, "aten::softmax", "softmax_warp_forward", kernel_us=20, shapes=(TOKENS,), types=(FP32,))
            _cast(b, TOKENS, FP32, BF16)

    return on_device(body, frames=FRAMES)


def negative_recorded_training() -> Trace:
    """Weights that are trained are cast once a step, and gradients flow through the cast: a near miss."""
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256))
    x = torch.randn(8, 256)

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16):
            loss = net(x).float().square().mean()
        loss.backward()

    return record(step)


def negative_weights_stored_in_half() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(12):
            _linear(b, casts=False)

    return on_device(body, frames=FRAMES)


def negative_cast_once_for_the_loss() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(12):
            _linear(b, casts=False)
        _cast(b, TOKENS, BF16, FP32)
        layer(b, "aten::mse_loss", "reduce_kernel", kernel_us=20, shapes=(TOKENS,), types=(FP32,))

    return on_device(body, frames=FRAMES)
