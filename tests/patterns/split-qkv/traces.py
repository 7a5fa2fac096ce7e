import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

HALF = ("c10::BFloat16",) * 3
GEMM = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn"
X, W, HEADS = (4, 197, 768), (768, 768), (4, 12, 197, 64)
FRAMES = ("train.py(40): main", "vit.py(12): forward")


def _linear(b: TraceBuilder, data=X, weight=W, *, us: float = 14) -> None:
    with b.op("aten::linear", shapes=(data, weight, weight[:1]), types=HALF), b.op("aten::addmm"):
        b.kernel(GEMM, us=us)


def _view(b: TraceBuilder) -> None:
    b.leaf("aten::view", us=3)
    b.leaf("aten::transpose", us=3)


def _fused(b: TraceBuilder, us: float = 20) -> None:
    b.leaf("aten::scaled_dot_product_attention", kernel="flash_fwd_kernel", kernel_us=us, shapes=(HEADS, HEADS, HEADS))


def _mlp(b: TraceBuilder) -> None:
    _linear(b, X, (3072, 768), us=60)
    b.leaf("aten::gelu", kernel="vectorized_elementwise_kernel", kernel_us=10, shapes=((4, 197, 3072),))
    _linear(b, (4, 197, 3072), (768, 3072), us=60)


def positive_on_a_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(12):
            for _ in range(3):
                _linear(b)
                _view(b)
            _fused(b)
            _linear(b)
            _mlp(b)

    return on_device(body, frames=FRAMES)


def positive_recorded_tiny_tokens() -> Trace:
    """Small products, as in a window of tokens: calls cost as much as the products."""
    torch = pytest.importorskip("torch")
    nn, functional = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self, dim: int) -> None:
            super().__init__()
            self.to_q, self.to_k, self.to_v = (nn.Linear(dim, dim) for _ in range(3))

        def forward(self, x):
            q, k, v = (layer(x).view(2, 196, 4, 24).transpose(1, 2) for layer in (self.to_q, self.to_k, self.to_v))
            return functional.scaled_dot_product_attention(q, k, v)

    attention, x = Attention(96).eval(), torch.randn(2, 196, 96)

    def step() -> None:
        with torch.inference_mode():
            for _ in range(4):
                attention(x)

    return record(step)


def negative_one_layer() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(12):
            _linear(b, X, (2304, 768), us=30)
            _fused(b)
            _linear(b)
            _mlp(b)

    return on_device(body, frames=FRAMES)


def negative_cross_attention() -> Trace:
    """Queries come from image tokens, keys and values from a text."""

    def body(b: TraceBuilder) -> None:
        for _ in range(12):
            _linear(b)
            _linear(b, (4, 77, 768))
            _linear(b, (4, 77, 768))
            _fused(b)
            _linear(b)

    return on_device(body, frames=FRAMES)


def negative_layers_with_activations() -> Trace:
    """Near miss: three layers of one shape in a row, but each works on what the one before made."""

    def body(b: TraceBuilder) -> None:
        for _ in range(3):
            b.leaf("aten::linear", us=900, shapes=((8, 196, 96), (96, 96), (96,)))
            b.leaf("aten::relu", us=50, shapes=((8, 196, 96),))
        b.leaf("aten::bmm", us=900, shapes=((8, 196, 96), (8, 96, 196)))

    return on_cpu(body, frames=FRAMES)


def negative_layers_of_different_functions() -> Trace:
    def body(b: TraceBuilder) -> None:
        for name in ("head_a.py(3): forward", "head_b.py(3): forward", "head_c.py(3): forward"):
            with b.frame(name):
                b.leaf("aten::linear", us=900, shapes=((8, 196, 96), (96, 96), (96,)))
        b.leaf("aten::bmm", us=900, shapes=((8, 196, 96), (8, 96, 196)))

    return on_cpu(body)
