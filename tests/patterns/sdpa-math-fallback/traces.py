import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn"
SIZES = (16, 256, 64)


def positive_recorded_three_dimensions() -> Trace:
    torch = pytest.importorskip("torch")
    q = torch.randn(8, 196, 32)
    return record(lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q))


def positive_recorded_training_with_a_mask_per_head() -> Trace:
    torch = pytest.importorskip("torch")
    q = torch.randn(2, 4, 196, 32, requires_grad=True)
    mask = torch.randn(4, 196, 196)
    return record(lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask).sum().backward())


def positive_on_a_device() -> Trace:
    half = ("c10::BFloat16",) * 3

    def body(b: TraceBuilder) -> None:
        for _ in range(8):
            b.leaf("aten::linear", kernel=GEMM, kernel_us=100)
            with (
                b.op("aten::scaled_dot_product_attention", shapes=(SIZES,) * 3, types=half),
                b.op("aten::_scaled_dot_product_attention_math", shapes=(SIZES,) * 3, types=half),
            ):
                b.leaf("aten::mul", kernel="vectorized_elementwise_kernel", kernel_us=8)
                b.leaf("aten::matmul", kernel=GEMM, kernel_us=30)
                b.leaf("aten::_safe_softmax", kernel="softmax_warp_forward", kernel_us=40)
                b.leaf("aten::matmul", kernel=GEMM, kernel_us=30)

    return on_device(body)


def negative_recorded_four_dimensions() -> Trace:
    torch = pytest.importorskip("torch")
    q = torch.randn(8, 1, 196, 32)
    return record(lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q))


def negative_recorded_dropout() -> Trace:
    """Near miss: no fused kernel of the CPU drops weights out, whatever the sizes."""
    torch = pytest.importorskip("torch")
    q = torch.randn(8, 1, 128, 32)
    return record(lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.1))
