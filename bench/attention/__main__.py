"""Whether the importance of heads that `record --attention` measures is that of ablation, and what measuring costs:
`python -m bench.attention`.

A small vision transformer learns to tell where a spot is, from a few seeds. Then every head is zeroed in turn, and the
change of the loss on held-out images is compared with both measures by Spearman's rank correlation, over all heads and
within layers: its mean absolute change image by image, which is what the measure by gradients approximates, and the
change of the mean loss, in which images that get better make up for others.

Costs are the least CPU time of a few steps, with the watch and without. It needs torch; without it, it says so.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchtraceap.analyzer.trace.recording import Recording
from torchtraceap.codemap.record.extras import ExtraContext
from torchtraceap.codemap.record.options import RecordOptions

from ..results import Figure, Target, publish
from ..timing import cpu_s

if TYPE_CHECKING:
    from torchtraceap.codemap.record.attention import AttentionExtra

SIDE, PATCH, WIDTH, LAYERS, HEADS, CLASSES = 32, 4, 48, 3, 6, 10
BATCH, TRAINING_STEPS, HELD_OUT, MEASURED_STEPS, TIMED_STEPS = 64, 150, 512, 4, 7
SEEDS = 3
TARGETS = {
    "gradient all_heads": Target(at_least=0.9),
    "gradient within_layers": Target(at_least=0.8),
    "norm within_layers": Target(at_least=0.6),
    "dead_head share": Target(at_most=1e-4),
}
"""The means over the seeds. Over layers the measure by norm is not meant to be compared."""

AGREEMENTS = ("all_heads", "within_layers", "all_heads_mean_loss", "within_layers_mean_loss")

Key = tuple[int, int]
"""A layer's and a head's number."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, publish, and answer 0 if every target is met."""
    argparse.ArgumentParser(prog="python -m bench.attention", description=__doc__).parse_args(arguments)
    if importlib.util.find_spec("torch") is None:
        print("bench.attention: skipped, torch is not installed")
        return 0
    import torch

    torch.set_num_threads(1)
    figures: list[Figure] = []
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(seed)
        model, steps = _model(), _Steps(generator)
        steps.learn(model)
        ablated = _ablated(model, _images(HELD_OUT, generator))
        by_gradient = _measured(model, steps.train, is_training=True)
        figures += _agreement(f"gradient, seed {seed}", by_gradient, ablated)
        figures += _agreement(f"norm, seed {seed}", _measured(model, steps.infer, is_training=False), ablated)
        if seed == 0:
            figures.append(Figure("dead_head", "share", _dead_share(model, steps.train)))
            figures += _cost("training", model, steps.train)
            figures += _cost("inference", model, steps.infer)
    figures += [_mean(figures, measure, name) for measure in ("gradient", "norm") for name in AGREEMENTS]
    notes = [f"{LAYERS} layers of {HEADS} heads, batch {BATCH}, {(SIDE // PATCH) ** 2} tokens"]
    return 0 if publish("attention", figures, targets=TARGETS, packages=("torch",), notes=notes) else 1


def _mean(figures: list[Figure], measure: str, name: str) -> Figure:
    values = [one.value for one in figures if one.name == name and one.subject.startswith(f"{measure}, ")]
    return Figure(measure, name, sum(values) / len(values))


def _model() -> Any:
    from torch import nn, zeros
    from torch.nn import functional

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.num_heads = HEADS
            self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
            return self.proj(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.attn, self.norm2 = nn.LayerNorm(WIDTH), Attention(), nn.LayerNorm(WIDTH)
            self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, x: Any) -> Any:
            x = x + self.attn(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class Transformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Conv2d(3, WIDTH, PATCH, PATCH)
            self.place = nn.Parameter(zeros(1, (SIDE // PATCH) ** 2, WIDTH))
            self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
            self.head = nn.Linear(WIDTH, CLASSES)

        def forward(self, x: Any) -> Any:
            tokens = self.embed(x).flatten(2).transpose(1, 2) + self.place
            return self.head(self.blocks(tokens).mean(1))

    return Transformer()


def _images(count: int, generator: Any) -> tuple[Any, Any]:
    """Noise with a bright spot, in the place and colour of the class."""
    import torch

    classes = torch.randint(CLASSES, (count,), generator=generator)
    images = 0.7 * torch.randn(count, 3, SIDE, SIDE, generator=generator)
    for image, number in enumerate(classes.tolist()):
        row, column = divmod(number, SIDE // 8)
        images[image, number % 3, 8 * row + 2 : 8 * row + 6, 8 * column + 2 : 8 * column + 6] += 1.5
    return images, classes


class _Steps:
    """What the model does in a step."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def learn(self, model: Any) -> None:
        import torch

        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        for _ in range(TRAINING_STEPS):
            self.train(model)
            optimizer.step()

    def train(self, model: Any) -> None:
        from torch.nn import functional

        images, classes = _images(BATCH, self._generator)
        model.zero_grad()
        functional.cross_entropy(model(images), classes).backward()

    def infer(self, model: Any) -> None:
        import torch

        images, _ = _images(BATCH, self._generator)
        with torch.inference_mode():
            model(images)


@dataclass(frozen=True, slots=True)
class _Ablated:
    """By how much the loss changes without each head."""

    by_image: dict[Key, float]
    in_the_mean: dict[Key, float]


def _ablated(model: Any, held_out: tuple[Any, Any]) -> _Ablated:
    before = _losses(model, held_out)
    found = _Ablated({}, {})
    for layer, head in _keys():
        weight = model.blocks[layer].attn.proj.weight.data
        kept = weight.clone()
        weight[:, _columns(head)] = 0
        change = _losses(model, held_out) - before
        found.by_image[layer, head] = float(change.abs().mean())
        found.in_the_mean[layer, head] = float(change.mean().abs())
        weight.copy_(kept)
    return found


def _losses(model: Any, held_out: tuple[Any, Any]) -> Any:
    """The loss of each image."""
    import torch
    from torch.nn import functional

    with torch.no_grad():
        return functional.cross_entropy(model(held_out[0]), held_out[1], reduction="none")


def _watched(model: Any, step: Callable[[], None], steps: int) -> AttentionExtra:
    """The extra after some steps of its own."""
    from torchtraceap.codemap.record.attention import AttentionExtra

    extra = AttentionExtra(RecordOptions())
    extra.start(ExtraContext({"model": model}, {id(module): path for path, module in model.named_modules()}))
    for _ in range(steps):
        step()
    extra.stop()
    extra.finish(Recording(), Path())
    return extra


def _measured(model: Any, step: Callable[[Any], None], *, is_training: bool) -> dict[Key, float]:
    """Importance by layer and head, comparable over layers."""
    found: dict[Key, float] = {}
    for name, tally in _watched(model, lambda: step(model), MEASURED_STEPS).tallies():
        values = tally.gradient if is_training else tally.norm
        assert values is not None
        layer = int(name.split(".")[1])
        found |= {(layer, head): value for head, value in enumerate(values.tolist())}
    return found


def _dead_share(model: Any, step: Callable[[Any], None]) -> float:
    """The share of a head whose output goes nowhere."""
    weight = model.blocks[1].attn.proj.weight.data
    kept = weight.clone()
    weight[:, _columns(2)] = 0
    found = _measured(model, step, is_training=True)
    weight.copy_(kept)
    return found[1, 2] / sum(found[1, head] for head in range(HEADS))


def _agreement(measure: str, importance: Mapping[Key, float], ablated: _Ablated) -> Iterator[Figure]:
    for change, all_heads, within_layers in (
        (ablated.by_image, "all_heads", "within_layers"),
        (ablated.in_the_mean, "all_heads_mean_loss", "within_layers_mean_loss"),
    ):
        yield Figure(measure, all_heads, spearman([importance[k] for k in _keys()], [change[k] for k in _keys()]))
        within = [
            spearman([importance[layer, h] for h in range(HEADS)], [change[layer, h] for h in range(HEADS)])
            for layer in range(LAYERS)
        ]
        yield Figure(measure, within_layers, sum(within) / len(within))


def _cost(name: str, model: Any, step: Callable[[Any], None]) -> Iterator[Figure]:
    """CPU time of a step alone and while attention is watched, turn by turn."""
    plain: list[float] = []
    watched: list[float] = []
    for _ in range(TIMED_STEPS):
        plain.append(cpu_s(lambda: step(model))[0])
        _watched(model, lambda: watched.append(cpu_s(lambda: step(model))[0]), 1)
    yield Figure(name, "step_cpu_ms", 1000 * min(plain))
    yield Figure(name, "watched_cpu_ms", 1000 * min(watched))
    yield Figure(name, "overhead_pct", 100 * (min(watched) / min(plain) - 1))


def spearman(one: list[float], other: list[float]) -> float:
    """Spearman's rank correlation of values without ties."""
    count = len(one)
    apart = sum((a - b) ** 2 for a, b in zip(_ranks(one), _ranks(other), strict=True))
    return 1 - 6 * apart / (count * (count * count - 1))


def _ranks(values: list[float]) -> list[int]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0] * len(values)
    for rank, place in enumerate(order):
        ranks[place] = rank
    return ranks


def _keys() -> list[Key]:
    return [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]


def _columns(head: int) -> slice:
    width = WIDTH // HEADS
    return slice(head * width, (head + 1) * width)


if __name__ == "__main__":
    sys.exit(main())
