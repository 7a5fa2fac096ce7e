"""Scenes of attention layers with recorded statistics, on a device and really run on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from torchtraceap.analyzer.timeline.attention_stats import AttentionStatistics, text_of
from torchtraceap.analyzer.trace.model import Trace

from .recorded import record
from .scenes import TraceBuilder, on_device

GEMM = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn"
FLASH = "pytorch_flash::flash_fwd_kernel"
HALF = ("c10::BFloat16",) * 4


def layers_on_device(
    said: Sequence[AttentionStatistics | None],
    *,
    tokens: int = 1024,
    heads: int = 12,
    mask: tuple[int, ...] = (),
    attention_us: float = 200,
) -> Trace:
    """A transformer with one layer for each of `said`; None is a layer that nothing was recorded of."""
    sizes, width = (8, heads, tokens, 64), heads * 64

    def layer(b: TraceBuilder, number: int, statistics: AttentionStatistics | None) -> None:
        with b.frame(f"nn.Module: Attention_{number}"), b.frame("vit.py(12): forward"):
            b.leaf(
                "aten::linear", kernel=GEMM, kernel_us=90, shapes=((8, tokens, width), (3 * width, width)), types=HALF
            )
            b.leaf(
                "aten::scaled_dot_product_attention",
                kernel=FLASH,
                kernel_us=attention_us,
                shapes=(sizes, sizes, sizes, mask),
                types=HALF,
            )
            b.leaf("aten::linear", kernel=GEMM, kernel_us=30, shapes=((8, tokens, width), (width, width)), types=HALF)
            if statistics is not None:
                with b.annotation(text_of(statistics)):
                    pass
        b.leaf("aten::linear", kernel=GEMM, kernel_us=240, shapes=((8, tokens, width), (4 * width, width)), types=HALF)

    def body(b: TraceBuilder) -> None:
        for number, statistics in enumerate(said):
            layer(b, number, statistics)

    return on_device(body)


def layer_on_cpu(said: AttentionStatistics | None, *, tokens: int = 256, heads: int = 4) -> Trace:
    """One recorded layer that writes `said` behind its attention, as the recorder's hook does."""
    torch = pytest.importorskip("torch")
    nn, functional = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.proj = nn.Linear(heads * 16, heads * 48), nn.Linear(heads * 16, heads * 16)

        def forward(self, x):
            q, k, v = self.qkv(x).unflatten(-1, (3, heads, 16)).permute(2, 0, 3, 1, 4)
            return self.proj(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))

    attention, x = Attention().eval(), torch.randn(2, tokens, heads * 16)
    if said is not None:
        attention.register_forward_hook(_writer(text_of(said)))

    def step() -> None:
        with torch.inference_mode():
            attention(x)

    return record(step)


def _writer(text: str) -> Callable[..., None]:
    def write(*_: object) -> None:
        from torch.profiler import record_function

        with record_function(text):
            pass

    return write
