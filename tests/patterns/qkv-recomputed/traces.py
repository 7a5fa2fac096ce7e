import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

HALF = ("c10::BFloat16",) * 3
GEMM = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn"
X, QKV, HEADS = (4, 197, 768), (2304, 768), (4, 12, 197, 64)


def _linear(b: TraceBuilder, module: str, weight=QKV, us: float = 40) -> None:
    with b.frame(module), b.op("aten::linear", shapes=(X, weight, weight[:1]), types=HALF):
        b.kernel(GEMM, us=us)


def _attend(b: TraceBuilder) -> None:
    b.leaf("aten::scaled_dot_product_attention", kernel="flash_fwd_kernel", kernel_us=20, shapes=(HEADS,) * 3)


def _block(b: TraceBuilder, modules: list[str]) -> None:
    with b.frame("vit.py(12): forward"):
        for module in modules:
            _linear(b, module)
        _attend(b)
        _linear(b, "nn.Module: Linear_9", (768, 768), 15)


def positive_three_calls_of_one_layer() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(6):
            _block(b, ["nn.Module: Linear_3"] * 3)

    return on_device(body)


def positive_recorded() -> Trace:
    torch = pytest.importorskip("torch")
    nn, functional = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self, dim: int) -> None:
            super().__init__()
            self.dim, self.qkv = dim, nn.Linear(dim, dim * 3)

        def forward(self, x):
            q = self.qkv(x)[..., : self.dim]
            k = self.qkv(x)[..., self.dim : 2 * self.dim]
            v = self.qkv(x)[..., 2 * self.dim :]
            return functional.scaled_dot_product_attention(*(t.unsqueeze(1) for t in (q, k, v)))

    attention, x = Attention(64), torch.randn(4, 64, 64, requires_grad=True)
    return record(lambda: attention(x).sum().backward())


def negative_three_layers() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(6):
            _block(b, [f"nn.Module: Linear_{k}" for k in (3, 4, 5)])

    return on_device(body)


def negative_second_pass_over_the_mirror_image() -> Trace:
    """Near miss: the same layer twice, in two executions of the function."""

    def body(b: TraceBuilder) -> None:
        for _ in range(6):
            for _ in range(2):
                with b.frame("vit.py(12): forward"):
                    _linear(b, "nn.Module: Linear_3")
                    _attend(b)

    return on_device(body)


def negative_layer_repeated_without_attention() -> Trace:
    """A recurrent head: one layer on what it made before."""

    def body(b: TraceBuilder) -> None:
        with b.frame("head.py(3): forward"):
            for _ in range(4):
                with b.frame("nn.Module: Linear_3"):
                    b.leaf("aten::linear", us=900, shapes=((8, 96), (96, 96), (96,)))

    return on_cpu(body)
