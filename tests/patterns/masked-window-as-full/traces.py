import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn"
HEADS = (4, 12, 1024, 64)
SCORES = (4, 12, 1024, 1024)


def _fused(mask: tuple[int, ...]) -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(6):
            b.leaf("aten::linear", kernel=GEMM, kernel_us=150)
            b.leaf(
                "aten::scaled_dot_product_attention",
                kernel="fmha_cutlassF_bf16_aligned_64x64_rf_sm80",
                kernel_us=120,
                shapes=(HEADS, HEADS, HEADS, mask),
            )

    return on_device(body)


def positive_fused() -> Trace:
    return _fused((1024, 1024))


def positive_separate_passes() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(6):
            b.leaf("aten::linear", kernel=GEMM, kernel_us=150)
            b.leaf("aten::matmul", kernel=GEMM, kernel_us=60, shapes=(HEADS, (4, 12, 64, 1024)))
            b.leaf("aten::masked_fill", kernel="elementwise_kernel", kernel_us=90, shapes=(SCORES, (1, 1, 1024, 1024)))
            b.leaf("aten::softmax", kernel="softmax_warp_forward", kernel_us=90, shapes=(SCORES,))
            b.leaf("aten::matmul", kernel=GEMM, kernel_us=60, shapes=(SCORES, HEADS))

    return on_device(body)


def positive_recorded() -> Trace:
    torch = pytest.importorskip("torch")
    q, at = torch.randn(1, 4, 512, 16), torch.arange(512)
    band = (at[:, None] - at[None]).abs() <= 16
    return record(lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=band))


def negative_bias_of_each_head() -> Trace:
    return _fused((1, 12, 1024, 1024))


def negative_padding() -> Trace:
    return _fused((4, 1, 1, 1024))


def negative_recorded_without_mask() -> Trace:
    torch = pytest.importorskip("torch")
    q = torch.randn(1, 4, 512, 16)
    return record(lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True))


def negative_recorded_few_tokens() -> Trace:
    """Near miss: over 64 tokens a mask costs next to nothing."""
    torch = pytest.importorskip("torch")
    q, at = torch.randn(16, 4, 64, 16), torch.arange(64)
    band = (at[:, None] - at[None]).abs() <= 4
    return record(lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=band))
