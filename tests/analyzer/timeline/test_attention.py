"""The attention table, on recorded traces and on ones played by hand."""

import math

import pytest

from tests.builders import TraceBuilder
from tests.patterns.recorded import record
from tests.shared import shared_timeline
from torchtraceap.analyzer.analysis import analyze
from torchtraceap.analyzer.timeline.attention import HeadShare, attention_table
from torchtraceap.analyzer.timeline.attention_backends import Backend
from torchtraceap.analyzer.timeline.attention_calls import attention_calls
from torchtraceap.analyzer.timeline.attention_parts import Part
from torchtraceap.analyzer.timeline.attention_stats import AttentionStatistics, Reach, parse, text_of
from torchtraceap.analyzer.timeline.build import build_timeline

BF16 = ("c10::BFloat16",) * 4
HEADS = (4, 12, 197, 64)


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        ("traces/S08_tracelens_vit_h100.json.gz", Backend.FLASH),
        ("traces/S09_tracelens_vit_mi300.json.gz", Backend.TRITON),
    ],
)
def test_a_recorded_vit_has_twelve_layers_on_one_backend(name, backend):
    table = attention_table(shared_timeline(name))
    assert [layer.name for layer in table] == [f"ViTSdpaSelfAttention_{k}" for k in range(12)]
    for layer in table:
        assert layer.backend is backend
        assert (layer.batch, layer.heads, layer.head_dim) == (4, 12, 64)
        assert layer.query_tokens == layer.key_tokens == 197
        assert layer.flops_per_step == 4 * 4 * 12 * 197 * 197 * 64
        assert layer.compute_ratio == 1.0
        assert 0 < layer.achieved_pct < 10  # 197 tokens don't fill the device


def test_a_recorded_video_transformer_attends_over_time_and_space_in_separate_passes():
    table = attention_table(shared_timeline("traces/S10_tracelens_timesformer_h100.json.gz"))
    assert len(table) == 24
    time, space = table[0], table[1]
    assert (time.batch, time.heads, time.query_tokens) == (3136, 12, 8)
    assert (space.batch, space.heads, space.query_tokens) == (8, 12, 3137)
    assert {layer.backend for layer in table} == {Backend.UNFUSED}
    assert time.compute_ratio < 0.6 < space.compute_ratio
    # 8 x 8 scores: the copies of the operands take longer than the products.
    assert time.copies_us_per_step > time.compute_us_per_step
    assert 34 < sum(layer.share_pct for layer in table) < 37


def test_a_compiled_program_shows_its_kernels_alone():
    (layer,) = attention_table(shared_timeline("traces/S12_ao_vit_bf16_compile_a100.json.gz"))
    assert (layer.name, layer.backend, layer.calls_per_step) == ("pytorch_flash::flash_fwd_kernel", Backend.FLASH, 12)
    assert layer.heads == 0
    assert math.isnan(layer.achieved_tflops)
    assert 13 < layer.share_pct < 14


def test_a_trace_without_attention_has_an_empty_table():
    assert attention_table(shared_timeline("traces/S15_dtu_resnet18_cpu.json")) == ()


def test_parts_add_up_and_statistics_reach_their_layer():
    said = AttentionStatistics("blocks.0.attn", (0.5, 0.3, 0.15, 0.05))
    b = TraceBuilder()
    for number in range(4):
        with b.step(number, us=20):
            with b.frame("nn.Module: Attention_0"):
                b.leaf("aten::linear", kernel="gemm", kernel_us=50, shapes=((4, 197, 768), (2304, 768)), types=BF16)
                b.leaf("aten::contiguous", kernel="direct_copy_kernel", kernel_us=20)
                b.leaf("aten::masked_fill", kernel="elementwise_kernel", kernel_us=10)
                b.leaf("aten::scaled_dot_product_attention", kernel="flash_fwd", kernel_us=40, shapes=(HEADS,) * 3)
                b.leaf("aten::linear", kernel="gemm", kernel_us=50, shapes=((4, 197, 768), (768, 768)), types=BF16)
                with b.annotation(text_of(said)):
                    pass
            b.leaf("aten::contiguous", kernel="direct_copy_kernel", kernel_us=1000)
            b.synchronize()
    (layer,) = attention_table(build_timeline(b.build()))
    assert layer.name == "Attention_0"
    assert (layer.compute_us_per_step, layer.copies_us_per_step, layer.masks_us_per_step) == (40, 20, 10)
    assert layer.us_per_step == 70
    assert layer.compute_ratio == pytest.approx(40 / 70)
    assert layer.head_shares == tuple(HeadShare(k, share, 0.25) for k, share in enumerate(said.importance))


def test_layers_without_modules_are_told_apart_by_their_place_in_the_step():
    b = TraceBuilder()
    with b.frame("train.py(3): main"):
        for number in range(4):
            with b.step(number, us=20):
                for us in (30, 70):
                    b.leaf("aten::linear", kernel="gemm", kernel_us=50, shapes=((4, 197, 768), (768, 768)))
                    b.leaf("aten::scaled_dot_product_attention", kernel="flash_fwd", kernel_us=us, shapes=(HEADS,) * 3)
                b.synchronize()
    table = attention_table(build_timeline(b.build()))
    assert [(layer.name, layer.us_per_step) for layer in table] == [("attention 1", 30), ("attention 2", 70)]


def test_recorded_attention_by_hand_and_fused_are_the_same_size():
    torch = pytest.importorskip("torch")
    q, k, v = (torch.randn(2, 4, 64, 16, requires_grad=True) for _ in range(3))

    def by_hand():
        ((q @ k.transpose(-2, -1) * 0.25).softmax(-1) @ v).sum().backward()

    def fused():
        torch.nn.functional.scaled_dot_product_attention(q, k, v).sum().backward()

    (one,), (other,) = (attention_table(build_timeline(record(step))) for step in (by_hand, fused))
    assert (one.backend, other.backend) == (Backend.UNFUSED, Backend.FLASH)
    for layer in (one, other):
        assert (layer.batch, layer.heads, layer.head_dim, layer.query_tokens, layer.key_tokens) == (2, 4, 16, 64, 64)
        assert layer.flops_per_step == 4 * 2 * 4 * 64 * 64 * 16
        assert layer.backward_us_per_step > 0
    assert one.other_us_per_step > 0


def test_a_recorded_fused_call_that_falls_back_is_called_math():
    torch = pytest.importorskip("torch")
    q = torch.randn(6, 64, 16)
    (layer,) = attention_table(
        build_timeline(record(lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q)))
    )
    assert layer.backend is Backend.MATH
    assert (layer.batch, layer.heads) == (6, 0)


def test_a_neighbourhood_ends_at_the_projections_and_at_the_next_attention():
    b = TraceBuilder(devices=())
    for number in range(4):
        with b.step(number, us=20):
            for name in ("aten::linear", "aten::clone", "aten::scaled_dot_product_attention", "aten::cat"):
                b.leaf(name, us=10, shapes=(HEADS,) * 3)
            b.leaf("aten::scaled_dot_product_attention", us=10, shapes=(HEADS,) * 3)
            b.leaf("aten::linear", us=10)
            b.leaf("aten::clone", us=10)
    timeline = build_timeline(b.build())
    first, second = attention_calls(timeline)[:2]
    names = [[timeline.trace.name_of(row) for row in call.ops.tolist()] for call in (first, second)]
    assert names == [["aten::clone", "aten::scaled_dot_product_attention", "aten::cat"], [FUSED_NAME]]
    assert first.part.tolist() == [Part.COPIES, Part.COMPUTE, Part.COPIES]


FUSED_NAME = "aten::scaled_dot_product_attention"


@pytest.mark.parametrize(
    "said",
    [
        AttentionStatistics("blocks.0.attn", (0.75, 0.25)),
        AttentionStatistics("encoder", (), (Reach(4, 0.5), Reach(8, 0.9)), 0.41),
        AttentionStatistics(
            "a", (0.5, 0.5), (), grid=(14, 7), reach_2d=(Reach(1, 0.25), Reach(2, 1.0)), measure="norm"
        ),
    ],
)
def test_statistics_are_read_as_they_were_written(said):
    read = parse(text_of(said))
    assert read is not None
    assert (read.layer, read.importance, read.reach) == (said.layer, said.importance, said.reach)
    assert (read.grid, read.reach_2d, read.measure) == (said.grid, said.reach_2d, said.measure)
    assert read.valid_share == said.valid_share or math.isnan(said.valid_share)


@pytest.mark.parametrize(
    "name",
    [
        "forward",
        "torchtraceap.attention ",
        "torchtraceap.attention importance=0.5,0.5",
        "torchtraceap.attention layer=a importance=2.0",
        "torchtraceap.attention layer=a importance=x",
        "torchtraceap.attention layer=a reach=8",
        "torchtraceap.attention layer=a valid=1.2",
        "torchtraceap.attention layer=a grid=14",
        "torchtraceap.attention layer=a grid=-1x4",
        "torchtraceap.attention layer=a reach2d=1:1.5",
    ],
)
def test_a_damaged_range_holds_no_statistics(name):
    assert parse(name) is None


@pytest.mark.parametrize(
    "shapes", [[(64,), (64,), (64,)], [(8, 64), (64,), (8, 64)], [(8, 64), (8, 64), ()], [(), (), ()]]
)
def test_operands_with_too_few_axes_have_unknown_sizes(shapes):
    """A trace may call anything attention: it stays in the table, and no rule fails over it."""
    b = TraceBuilder(devices=())
    for number in range(4):
        with b.step(number):
            b.leaf("aten::scaled_dot_product_attention", us=500, shapes=shapes)
    analysis = analyze(b.build())
    assert analysis.failures == ()
    (layer,) = attention_table(analysis.timeline)
    assert (layer.query_tokens, layer.key_tokens, layer.head_dim) == (0, 0, 0)
    assert math.isnan(layer.flops_per_step)
