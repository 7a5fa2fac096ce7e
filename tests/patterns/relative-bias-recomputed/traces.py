import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn"
WINDOWS, TABLE = (64, 3, 49, 32), (169, 3)
GATHERED, BIAS, SCORES = (49, 49, 3), (3, 49, 49), (64, 3, 49, 49)


def _window_attention(window: int = 7, heads: int = 4, width: int = 16):
    torch = pytest.importorskip("torch")
    n = window * window

    class WindowAttention(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Parameter(torch.randn((2 * window - 1) ** 2, heads))
            self.index = torch.randint(0, len(self.table), (n, n))
            self.qkv = torch.nn.Linear(heads * width, heads * width * 3)

        def forward(self, x):
            q, k, v = self.qkv(x).view(len(x), n, 3, heads, width).permute(2, 0, 3, 1, 4)
            bias = self.table[self.index.view(-1)].view(n, n, -1).permute(2, 0, 1).contiguous()
            scores = q @ k.transpose(-2, -1) + bias.unsqueeze(0)
            return scores.softmax(-1) @ v

    return torch, WindowAttention(), torch.randn(4, n, heads * width)


def positive_recorded_inference() -> Trace:
    torch, module, x = _window_attention()

    def step() -> None:
        with torch.inference_mode():
            for _ in range(3):
                module(x)

    return record(step)


def _gather(b: TraceBuilder) -> None:
    b.leaf("aten::index", kernel="index_elementwise_kernel", kernel_us=12, shapes=(TABLE, ()))
    b.leaf("aten::view", shapes=((2401, 3), ()))
    b.leaf("aten::permute", shapes=(GATHERED, ()))
    b.leaf("aten::contiguous", kernel="direct_copy_kernel", kernel_us=10, shapes=(BIAS, ()))


def _layer(b: TraceBuilder, *, gathers: bool) -> None:
    b.leaf("aten::linear", kernel=GEMM, kernel_us=60, shapes=((64, 49, 96), (288, 96)))
    if gathers:
        _gather(b)
    b.leaf(
        "aten::scaled_dot_product_attention",
        kernel="fmha_cutlassF_bf16_aligned_64x64_rf_sm80",
        kernel_us=40,
        shapes=(WINDOWS, WINDOWS, WINDOWS, SCORES),
    )
    b.leaf("aten::linear", kernel=GEMM, kernel_us=30, shapes=((64, 49, 96), (96, 96)))


def positive_fused_on_a_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(12):
            _layer(b, gathers=True)

    return on_device(body, frames=("train.py(40): main", "swin.py(12): forward"))


def negative_recorded_training() -> Trace:
    """Near miss: the table takes gradients, so every step needs its own bias."""
    _, module, x = _window_attention()
    return record(lambda: module(x).sum().backward())


def negative_kept() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(12):
            _layer(b, gathers=False)

    return on_device(body)


def negative_other_index() -> Trace:
    """Boolean selection of tokens, not a bias."""

    def body(b: TraceBuilder) -> None:
        for _ in range(12):
            b.leaf("aten::index", kernel="index_elementwise_kernel", kernel_us=12, shapes=((64, 49, 96), ()))
            _layer(b, gathers=False)

    return on_device(body)
