from collections.abc import Callable

import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

HALF = ("c10::BFloat16", "c10::BFloat16")
GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"
POINTWISE = "void at::native::vectorized_elementwise_kernel<4>"
Q, K, S = (96, 512, 64), (96, 64, 512), (96, 512, 512)
WEIGHTS = (8, 12, 512, 512)
MODULE = (
    "nn.Module: MultiheadAttention_0",
    "torch/nn/modules/activation.py(1255): forward",
    "torch/nn/functional.py(6120): multi_head_attention_forward",
)


def _passes(b: TraceBuilder, *, average: bool = True) -> None:
    b.leaf("aten::bmm", kernel=GEMM, kernel_us=60, shapes=(Q, K), types=HALF)
    b.leaf("aten::softmax", kernel="softmax_warp_forward", kernel_us=70, shapes=(S,), types=HALF)
    b.leaf("aten::bmm", kernel=GEMM, kernel_us=60, shapes=(S, Q), types=HALF)
    b.leaf("aten::linear", kernel=GEMM, kernel_us=30, shapes=((4096, 768), (768, 768)), types=HALF)
    if average:
        b.leaf("aten::mean", kernel="reduce_kernel", kernel_us=40, shapes=(WEIGHTS,), types=HALF)


def _mlp(b: TraceBuilder) -> None:
    b.leaf("aten::linear", kernel=GEMM, kernel_us=600, shapes=((8, 512, 768), (3072, 768)), types=HALF)


def _in_module(b: TraceBuilder, body: Callable[[TraceBuilder], None]) -> None:
    with b.frame("detr.py(12): forward"), b.frame(MODULE[0]), b.frame(MODULE[1]), b.frame(MODULE[2]):
        body(b)


def positive_in_the_module() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(6):
            _in_module(b, _passes)
            _mlp(b)

    return on_device(body)


def positive_without_frames() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(6):
            _passes(b)
            _mlp(b)

    return on_device(body, frames=())


def positive_fast_path_on_a_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(6):
            with b.frame("vit.py(9): forward"), b.frame(MODULE[0]), b.op("aten::_native_multi_head_attention"):
                _passes(b)
            _mlp(b)

    return on_device(body)


def positive_recorded_training() -> Trace:
    torch = pytest.importorskip("torch")
    attention = torch.nn.MultiheadAttention(64, 4, batch_first=True)
    x = torch.randn(2, 256, 64)

    def step() -> None:
        y, _ = attention(x, x, x)
        y.sum().backward()

    return record(step)


def negative_recorded_without_weights() -> Trace:
    torch = pytest.importorskip("torch")
    attention = torch.nn.MultiheadAttention(64, 4, batch_first=True)
    x = torch.randn(2, 256, 64)

    def step() -> None:
        y, _ = attention(x, x, x, need_weights=False)
        y.sum().backward()

    return record(step)


def negative_recorded_fast_path() -> Trace:
    """In evaluation on the CPU the module does the same either way."""
    torch = pytest.importorskip("torch")
    attention = torch.nn.MultiheadAttention(64, 4, batch_first=True).eval()
    x = torch.randn(2, 256, 64)

    def step() -> None:
        with torch.inference_mode():
            attention(x, x, x)

    return record(step)


def negative_recorded_dropout() -> Trace:
    """The CPU's fused kernels cannot drop weights: without weights the passes are the same."""
    torch = pytest.importorskip("torch")
    attention = torch.nn.MultiheadAttention(64, 4, dropout=0.1, batch_first=True)
    x = torch.randn(2, 128, 64)

    def step() -> None:
        attention(x, x, x)[0].sum().backward()

    return record(step)


def negative_attention_written_by_hand() -> Trace:
    """Near miss: the same passes in the program's own code are another pattern's."""

    def body(b: TraceBuilder) -> None:
        for _ in range(6):
            with b.frame("vit.py(9): forward"):
                _passes(b, average=False)
            _mlp(b)

    return on_device(body)
