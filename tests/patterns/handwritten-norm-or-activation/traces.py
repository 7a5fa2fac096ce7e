import math

import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

FRAMES = ("train.py(40): main", "vit.py(9): forward")
TOKENS = (64, 197, 768)
MUL = "void at::native::vectorized_elementwise_kernel<4, at::native::BUnaryFunctor<float, float, float, MulFunctor>>"


def _gelu(b: TraceBuilder) -> None:
    for name in ("aten::mul", "aten::div", "aten::erf", "aten::add", "aten::mul"):
        b.leaf(name, us=8, kernel=MUL, kernel_us=60, shapes=(TOKENS, ()))


def positive_recorded_layer_norm() -> Trace:
    torch = pytest.importorskip("torch")
    tokens = torch.rand(16, 196, 192, requires_grad=True)
    weight, bias = torch.ones(192, requires_grad=True), torch.zeros(192, requires_grad=True)

    def norm(x):
        mean = x.mean(-1, keepdim=True)
        var = (x - mean).pow(2).mean(-1, keepdim=True)
        return (x - mean) / torch.sqrt(var + 1e-6) * weight + bias

    return record(lambda: norm(tokens).sum().backward())


def positive_recorded_gelu() -> Trace:
    torch = pytest.importorskip("torch")
    tokens, linear = torch.rand(8, 196, 192), torch.nn.Linear(192, 192)

    def gelu(x):
        return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))

    def step() -> None:
        with torch.no_grad():
            linear(gelu(tokens))

    return record(step)


def positive_gelu_on_a_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(6):
            b.leaf("aten::linear", us=20, kernel="ampere_bf16_s16816gemm", kernel_us=400)
            _gelu(b)

    return on_device(body, frames=FRAMES)


def negative_recorded_frozen_batch_norm() -> Trace:
    """Scale and shift: the library's operator saves 3 % and keeps its input for the backward."""
    torch = pytest.importorskip("torch")
    maps = torch.rand(4, 32, 56, 56, requires_grad=True)
    weight, variance, shift = torch.ones(32), torch.ones(32), torch.zeros(32)

    def frozen(x):
        scale = weight * (variance + 1e-5).rsqrt()
        return x * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1)

    return record(lambda: frozen(maps).sum().backward())


def negative_recorded_library_operators() -> Trace:
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    tokens = torch.rand(8, 196, 192)
    return record(lambda: functional.softmax(functional.gelu(functional.layer_norm(tokens, (192,))), dim=-1))


def negative_recorded_squeeze_and_excite() -> Trace:
    """A gate of another size than what it multiplies."""
    torch = pytest.importorskip("torch")
    maps, linear = torch.rand(8, 32, 56, 56), torch.nn.Linear(32, 32)
    return record(lambda: maps * torch.sigmoid(linear(maps.mean((2, 3))))[:, :, None, None])


def negative_recorded_mish() -> Trace:
    """On the CPU the library's Mish has a slower backward than the three operators."""
    torch = pytest.importorskip("torch")
    maps = torch.rand(4, 32, 56, 56, requires_grad=True)
    return record(lambda: (maps * torch.tanh(torch.nn.functional.softplus(maps))).sum().backward())
