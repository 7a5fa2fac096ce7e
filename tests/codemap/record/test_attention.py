"""What is measured of attention, on models that run here."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

from tests.patterns.recorded import record  # noqa: E402
from torchtraceap.analyzer.timeline.attention_stats import AttentionStatistics, statistics_of  # noqa: E402
from torchtraceap.analyzer.trace.model import Trace  # noqa: E402
from torchtraceap.analyzer.trace.recording import Recording  # noqa: E402
from torchtraceap.codemap.record.attention import AttentionExtra  # noqa: E402
from torchtraceap.codemap.record.attention_measures import grid_of, windows  # noqa: E402
from torchtraceap.codemap.record.extras import ExtraContext  # noqa: E402
from torchtraceap.codemap.record.options import RecordOptions  # noqa: E402

HEADS, WIDTH, TOKENS = 4, 8, 16


class Fused(nn.Module):
    """As timm writes it."""

    def __init__(self, heads: int = HEADS) -> None:
        super().__init__()
        self.num_heads, self.inner = heads, heads * WIDTH
        self.qkv, self.proj = nn.Linear(self.inner, 3 * self.inner), nn.Linear(self.inner, self.inner)
        self.drop = nn.Dropout(0.0)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.num_heads, WIDTH)).permute(2, 0, 3, 1, 4)
        return self.proj(self.attend(q, k, v).transpose(1, 2).flatten(2))

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v)


class ByHand(Fused):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = (q * WIDTH**-0.5 @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.drop(weights) @ v


class ByModules(Fused):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = functional.softmax(torch.matmul(q, k.transpose(-2, -1)) * WIDTH**-0.5, dim=-1)
        return torch.matmul(functional.dropout(weights, 0.0), v)


class ByEquation(Fused):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = torch.softmax(torch.einsum("bhqd,bhkd->bhqk", q, k) * WIDTH**-0.5, -1)
        return torch.einsum("bhqk,bhkd->bqhd", weights, v).transpose(1, 2)


class Folded(Fused):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (one.flatten(0, 1) for one in (q, k, v))
        weights = torch.softmax(torch.bmm(q, k.transpose(1, 2)) * WIDTH**-0.5, dim=2)
        return torch.bmm(weights, v).unflatten(0, (-1, self.num_heads))


class ByName(Fused):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return scaled_dot_product_attention(q, k, v)


WRITTEN = (Fused, ByHand, ByModules, ByEquation, Folded, ByName)


class Torch(nn.Module):
    """PyTorch's own, with and without its weights."""

    def __init__(self, need_weights: bool) -> None:
        super().__init__()
        self.need_weights = need_weights
        self.attn = nn.MultiheadAttention(HEADS * WIDTH, HEADS, batch_first=True)

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return self.attn(x, x, x, key_padding_mask=padding, need_weights=self.need_weights)[0]


def context(model: nn.Module) -> ExtraContext:
    return ExtraContext({"model": model}, {id(module): path for path, module in model.named_modules()})


def measured(
    model: nn.Module, step: Callable[[], object], *, times: int = 2
) -> tuple[list[AttentionStatistics], AttentionExtra, Trace]:
    """What the trace of three full steps says, after `times` steps of the extra's own."""
    extra = AttentionExtra(RecordOptions(full=3))
    extra.start(context(model))
    for _ in range(times):
        step()
    extra.stop()
    trace = record(step)
    extra.on_full_step(2)
    found = [statistics for _, statistics in statistics_of(trace)]
    return found, extra, trace


def training(model: nn.Module, *inputs: Tensor) -> Callable[[], None]:
    def step() -> None:
        model.zero_grad()
        model(*inputs).square().mean().backward()

    return step


def inference(model: nn.Module, *inputs: Tensor) -> Callable[[], None]:
    model.eval()

    def step() -> None:
        with torch.inference_mode():
            model(*inputs)

    return step


def inputs(tokens: int = TOKENS, heads: int = HEADS, sequences: int = 3) -> Tensor:
    return torch.randn(sequences, tokens, heads * WIDTH, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("kind", WRITTEN)
@pytest.mark.parametrize("how", [training, inference])
def test_a_dead_head_is_worth_nothing_however_attention_is_written(kind: type[Fused], how: Callable) -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.LayerNorm(HEADS * WIDTH), kind())
    with torch.no_grad():
        model[1].proj.weight[:, WIDTH : 2 * WIDTH] = 0  # what head 1 gives goes nowhere
    found, extra, _ = measured(model, how(model, inputs()))
    assert [one.layer for one in found] == ["1"] * len(found)
    assert found
    one = found[0]
    assert len(one.importance) == HEADS
    assert one.importance[1] == pytest.approx(0, abs=1e-6)
    assert sum(one.importance) == pytest.approx(1, abs=1e-4)
    assert min(one.importance[0], *one.importance[2:]) > 0.02
    assert one.measure == ("gradient" if how is training else "norm")
    assert extra.finish(Recording(), Path()).notes == ()


@pytest.mark.parametrize("how", [training, inference])
def test_all_ways_of_writing_it_measure_the_same(how: Callable) -> None:
    said = []
    for kind in WRITTEN:
        torch.manual_seed(2)
        model = nn.Sequential(kind())
        said.append(measured(model, how(model, inputs()))[0][0])
    for one in said[1:]:
        assert one.importance == pytest.approx(said[0].importance, rel=1e-3)
        assert [reach.share for reach in one.reach] == pytest.approx([reach.share for reach in said[0].reach], rel=1e-3)


def test_importance_is_output_times_gradient() -> None:
    torch.manual_seed(3)
    model, x = Fused(), inputs()
    q, k, v = model.qkv(x).unflatten(-1, (3, HEADS, WIDTH)).permute(2, 0, 3, 1, 4)
    heads = (q @ k.transpose(-2, -1) * WIDTH**-0.5).softmax(-1) @ v
    mask = torch.ones(3, HEADS, 1, 1, requires_grad=True)  # one for each sequence and head, as in the paper
    model.proj((heads * mask).transpose(1, 2).flatten(2)).square().mean().backward()
    assert mask.grad is not None
    expected = mask.grad.abs().sum(0).flatten()
    wanted = (expected / expected.sum()).tolist()
    (one, *_) = measured(nn.Sequential(model), training(nn.Sequential(model), x))[0]
    assert one.importance == pytest.approx(wanted, rel=1e-3)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("how", [training, inference])
def test_pytorchs_own_attention(need_weights: bool, how: Callable) -> None:
    torch.manual_seed(4)
    model = Torch(need_weights)
    with torch.no_grad():
        model.attn.in_proj_weight[2 * HEADS * WIDTH :][:WIDTH] = 0  # the values of head 0
        model.attn.in_proj_bias[2 * HEADS * WIDTH :][:WIDTH] = 0
    (one, *_), extra, _ = measured(model, how(model, inputs()))
    assert one.layer == "attn"
    assert one.importance[0] == pytest.approx(0, abs=1e-6)
    assert one.importance[1] > 0.02
    assert not extra.finish(Recording(), Path()).notes


def test_the_encoder_layers_fast_path_stays_and_is_measured() -> None:
    torch.manual_seed(5)
    layer = nn.TransformerEncoderLayer(HEADS * WIDTH, HEADS, 64, batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    with torch.no_grad():
        model.layers[0].self_attn.out_proj.weight[:, :WIDTH] = 0
    found, _, trace = measured(model, inference(model, inputs()))
    assert "aten::_transformer_encoder_layer_fwd" in trace.names
    assert [one.layer for one in found[:2]] == ["layers.0", "layers.1"]
    assert found[0].importance[0] == pytest.approx(0, abs=1e-6)
    assert found[1].importance[0] > 0.02


def test_padding_is_measured_by_the_mask() -> None:
    torch.manual_seed(6)
    model, x = Torch(False), inputs()
    padding = torch.zeros(3, TOKENS, dtype=torch.bool)
    padding[0, 4:] = padding[1, 8:] = True
    (one, *_) = measured(model, training(model, x, padding))[0]
    assert one.valid_share == pytest.approx((4 + 8 + 16) / 48, abs=1e-4)
    (other, *_) = measured(model, training(model, x))[0]
    assert math.isnan(other.valid_share)


def test_a_causal_mask_is_no_padding() -> None:
    class Causal(Fused):
        def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    class Masked(Fused):
        def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            mask = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
            return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    said = []
    for kind in (Causal, Masked):
        torch.manual_seed(7)
        model = nn.Sequential(kind())
        said.append(measured(model, training(model, inputs()))[0][0])
    assert math.isnan(said[0].valid_share)
    assert math.isnan(said[1].valid_share)
    assert said[0].importance == pytest.approx(said[1].importance, rel=1e-3)
    assert [one.share for one in said[0].reach] == pytest.approx([one.share for one in said[1].reach], rel=1e-3)


class Local(Fused):
    """Looks at the pixels right beside the query's own."""

    def __init__(self, side: int, prefix: int, distance: int) -> None:
        super().__init__()
        place = torch.arange(side * side)
        rows, columns = place // side, place % side
        apart = torch.maximum((rows[:, None] - rows[None, :]).abs(), (columns[:, None] - columns[None, :]).abs())
        mask = torch.zeros(prefix + side * side, prefix + side * side)
        mask[prefix:, prefix:] = torch.where(apart <= distance, 0.0, -30.0)
        self.register_buffer("mask", mask)
        self.stem = nn.Conv2d(1, 1, 1)
        self.side = side

    def forward(self, x: Tensor) -> Tensor:
        self.stem(torch.zeros(1, 1, self.side, self.side))
        return super().forward(x)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=self.mask)


@pytest.mark.parametrize("prefix", [0, 1])
def test_local_attention_reaches_no_farther_than_its_window(prefix: int) -> None:
    torch.manual_seed(8)
    model = nn.Sequential(Local(16, prefix, 2))
    (one, *_) = measured(model, training(model, inputs(256 + prefix)))[0]
    assert one.grid == (16, 16)
    within = {reach.window_tokens: reach.share for reach in one.reach_2d}
    assert within[2] > 0.99
    assert within[1] < 0.6
    along = {reach.window_tokens: reach.share for reach in one.reach}
    assert along[48] > 0.9  # all look at the class token too
    assert along[16] < 0.7


def test_global_attention_reaches_as_far_as_there_are_tokens() -> None:
    class Uniform(Fused):
        def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return functional.scaled_dot_product_attention(0 * q, k, v)

    model = nn.Sequential(Uniform())
    (one, *_) = measured(model, training(model, inputs(64)))[0]
    within = {reach.window_tokens: reach.share for reach in one.reach}
    inside = sum(abs(i - j) <= 16 for i in range(64) for j in range(64)) / 64**2
    assert within[16] == pytest.approx(inside, abs=1e-3)


@pytest.mark.parametrize("kind", [*WRITTEN, Torch])
@pytest.mark.parametrize("precision", [nullcontext, lambda: torch.autocast("cpu", torch.bfloat16)])
def test_results_gradients_and_random_numbers_stay_as_they_are(
    kind: type[nn.Module], precision: Callable[[], AbstractContextManager]
) -> None:
    def run(is_watched: bool) -> list[Tensor]:
        torch.manual_seed(9)
        model = nn.Sequential(kind(True) if kind is Torch else kind(), nn.Dropout(0.3), nn.Linear(HEADS * WIDTH, 5))
        extra = AttentionExtra(RecordOptions())
        if is_watched:
            extra.start(context(model))
        with precision():
            output = model(inputs())
        output.float().square().mean().backward()
        if is_watched:
            extra.stop()
            extra.finish(Recording(), Path())
        drawn = torch.rand(3)
        return [output.detach(), drawn, *(p.grad for p in model.parameters() if p.grad is not None)]

    for one, other in zip(run(False), run(True), strict=True):
        assert torch.equal(one, other)


def test_everything_is_put_back() -> None:
    places = (
        (functional, "scaled_dot_product_attention"),
        (torch, "softmax"),
        (torch, "einsum"),
        (torch.Tensor, "softmax"),
        (torch.Tensor, "__matmul__"),
    )
    before = [getattr(place, name) for place, name in places]
    own = set(vars(torch.Tensor))
    model = nn.Sequential(Fused())
    _, extra, _ = measured(model, training(model, inputs()))
    assert [getattr(place, name) for place, name in places] == before
    assert set(vars(torch.Tensor)) == own
    assert scaled_dot_product_attention is functional.scaled_dot_product_attention is before[0]
    from torch.nn.modules import module

    assert not module._global_forward_hooks
    assert not module._global_forward_pre_hooks
    extra.finish(Recording(), Path())


def test_a_failure_while_looking_is_a_note_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchtraceap.codemap.record.attention.by_heads", lambda *_: 1 / 0)
    model = nn.Sequential(Fused())
    found, extra, _ = measured(model, training(model, inputs()))
    assert found == []
    (note,) = extra.finish(Recording(), Path()).notes
    assert "ZeroDivisionError" in note


def test_two_attentions_in_one_module_are_left_out_and_said() -> None:
    class Twice(Fused):
        def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return super().attend(super().attend(q, k, v), k, v)

    model = nn.Sequential(Twice())
    found, extra, _ = measured(model, training(model, inputs()))
    assert found == []
    assert "attends 2 times" in extra.finish(Recording(), Path()).notes[0]


def test_models_without_attention_say_so() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Softmax(dim=-1))
    found, extra, _ = measured(model, training(model, torch.randn(2, 3, 4)))
    assert found == []
    assert extra.finish(Recording(), Path()).notes == ("--attention: no attention was found in the model",)


def test_checkpointed_attention_is_measured_once_for_its_gradient() -> None:
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(10)
    model, x = nn.Sequential(Fused()), inputs().requires_grad_()
    plain = measured(model, training(model, x))[0][0]

    def step() -> None:
        model.zero_grad()
        result = checkpoint(model, x, use_reentrant=True)
        result.square().mean().backward()

    checkpointed = measured(model, step)[0][0]
    assert checkpointed.measure == "gradient"
    assert checkpointed.importance == pytest.approx(plain.importance, rel=1e-3)


def test_compiled_models_are_left_alone_and_said() -> None:
    model = nn.Sequential(Fused())
    compiled = torch.compile(model, backend="eager")
    found, extra, _ = measured(compiled, lambda: compiled(inputs()))
    assert found == []
    assert "compiled" in extra.finish(Recording(), Path()).notes[0]
    torch._dynamo.utils.counters.clear()


def test_notes_do_not_grow_when_the_file_is_written_again() -> None:
    model = nn.Sequential(nn.Linear(4, 4))
    _, extra, _ = measured(model, training(model, torch.randn(2, 3, 4)))
    assert extra.finish(Recording(), Path()).notes == extra.finish(Recording(), Path()).notes


def test_windows_and_grids() -> None:
    assert windows(14) == [1, 2, 3, 4, 6, 8, 12]
    assert windows(2) == [1]
    assert grid_of(197, [(56, 56)]) == (1, (14, 14))
    assert grid_of(196, [(14, 14)]) == (0, (14, 14))
    assert grid_of(196, ()) == (0, (0, 0)), "no image anywhere"
    assert grid_of(6 * 20 + 1, [(56, 56), (6, 20)]) == (1, (6, 20))
    assert grid_of(7, [(56, 56)]) == (0, (0, 0))
