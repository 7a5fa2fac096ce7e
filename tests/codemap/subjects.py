"""Varied functions for the alignment test: each is run under the profiler, and every event must find its line."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    scale = q.shape[-1] ** -0.5
    scores = q @ k.transpose(-2, -1) * scale
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e4)
    weights = scores.softmax(-1)
    weights = F.dropout(weights, 0.1, training=False)
    return (weights @ v).transpose(1, 2).flatten(2)


def patches(image: Tensor, size: int) -> Tensor:
    tiles = []
    for top in range(0, image.shape[-2], size):
        for left in range(0, image.shape[-1], size):
            tile = image[..., top : top + size, left : left + size]
            if (top + left) // size % 2:
                tile = tile.flip(-1)
            tiles.append(tile.reshape(tile.shape[0], -1))
    return torch.stack(tiles, dim=1)


def box_iou(a: Tensor, b: Tensor) -> Tensor:
    area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    low = torch.max(a[:, None, :2], b[None, :, :2])
    high = torch.min(a[:, None, 2:], b[None, :, 2:])
    size = (high - low).clamp(min=0)
    inter = size[..., 0] * size[..., 1]
    union = area_a[:, None] + area_b - inter
    return inter / union


def focal_loss(
    logits: Tensor,
    target: Tensor,
    alpha: float = 0.25,
) -> Tensor:
    prob = logits.sigmoid()
    ce = F.binary_cross_entropy_with_logits(
        logits,
        target,
        reduction="none",
    )
    pt = prob * target + (1 - prob) * (1 - target)
    loss = ce * (1 - pt) ** 2
    weight = (
        alpha * target
        + (1 - alpha) * (1 - target)
    )  # fmt: skip
    return (weight * loss).mean()


def early_return(x: Tensor) -> Tensor:
    y = x.relu()
    if y.sum() < 0:
        return y.neg()
    if y.max() > 0:
        y = y.exp()
        return y.log1p()
    return y.cos()


def comprehensions(x: Tensor) -> Tensor:
    rows = [row * 2 for row in x if row.sum() > 0]
    table = {i: row.exp() for i, row in enumerate(rows)}
    squares = sum((row**2).sum() for row in table.values())
    return torch.cat([r.unsqueeze(0) for r in rows]).mean() + squares


def greedy(x: Tensor, limit: int) -> list[int]:
    chosen = []
    scores = x.clone()
    while (best := scores.argmax().item()) >= 0 and len(chosen) < limit:
        chosen.append(int(best))
        scores[best] = -1.0
        if scores.max() < 0:
            break
        scores = scores * 0.9
    else:
        scores = scores.abs()
    return chosen


def guarded(x: Tensor) -> Tensor:
    out = x.new_zeros(x.shape)
    try:
        out = out + x.reshape(7, 11, 13)
        out = out.tan()
    except RuntimeError:
        out = out - x.sin()
    finally:
        out = out.clamp(-1, 1)
    with torch.no_grad():
        norm = out.norm()
    with contextlib.suppress(RuntimeError):
        out = out.view(5, 9)
    return out / norm


def blend(mode: str, a: Tensor, b: Tensor) -> Tensor:
    match mode:
        case "mean":
            return (a + b) / 2
        case "max":
            return torch.maximum(a, b)
        case _:
            mixed = a.lerp(b, 0.3)
    return mixed.round()


def modes(a: Tensor, b: Tensor) -> list[Tensor]:
    found = []
    for mode in ("max", "mean", "other"):
        found.append(blend(mode, a, b))
    return found


def chained(x: Tensor) -> Tensor:
    out = (
        x.permute(0, 2, 1)
        .contiguous()
        .view(x.shape[0], -1)
        .softmax(dim=-1)
    )  # fmt: skip
    first, second = out.chunk(2, dim=-1)
    gate = first.sigmoid() if first.numel() > second.numel() else second.tanh()
    out = out.masked_fill(out < out.mean(), 0.0); total = out.sum()  # noqa: E702  # fmt: skip
    return gate * total


def scaled(factor: float) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    def decorate(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        @functools.wraps(function)
        def run(*args: Tensor) -> Tensor:
            out = function(*args)
            return out.mul(factor)

        return run

    return decorate


@scaled(0.5)
def decorated(x: Tensor) -> Tensor:
    x = x - x.mean()
    return x / x.std()


def windows(x: Tensor, size: int) -> Iterator[Tensor]:
    padded = F.pad(x, (0, size))
    for start in range(0, x.shape[-1], size):
        part = padded.narrow(-1, start, size)
        yield part.sum(-1)
        del part


def functional_style(x: Tensor) -> Tensor:
    activate: Callable[[Tensor], Tensor] = lambda t: t.clamp(min=0) + t.neg()  # noqa: E731
    square = functools.partial(torch.pow, exponent=2)
    parts = [part.abs() for part in windows(x, 4)]
    y = decorated(activate(x))
    z = square(y) + torch.stack(list(map(torch.sigmoid, parts))).mean()
    return z.detach()


@dataclass
class Meter:
    total: float = 0.0
    count: int = 0

    def update(self, value: Tensor, n: int = 1) -> None:
        self.total += float(value) * n
        self.count += n

    @property
    def average(self) -> float:
        return self.total / max(self.count, 1)


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(width)
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.register_buffer("shift", torch.ones(1, width, 1, 1))

    def gate(self, x: Tensor) -> Tensor:
        pooled = F.adaptive_avg_pool2d(x, 1)
        return x * torch.sigmoid(pooled)

    def forward(self, x: Tensor) -> Tensor:
        h = self.conv1(F.relu(self.norm(x)))
        h = self.conv2(F.relu(h))
        return x + self.gate(h) * self.shift


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.blocks = nn.ModuleList(Block(8) for _ in range(3))
        self.heads = nn.ModuleDict({"cls": nn.Linear(8, 5), "box": nn.Linear(8, 4)})

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        x = self.stem(x)
        skips = []
        for i, block in enumerate(self.blocks):
            x = block(x)
            if i % 2 == 0:
                x = F.max_pool2d(x, 2)
                skips.append(x)
        pooled = torch.cat([s.mean((2, 3)) for s in skips], 0).float()
        return {name: head(pooled) for name, head in self.heads.items()}


def train(steps: int = 3) -> float:
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    meter = Meter()
    for step in range(steps):
        images, labels = torch.randn(2, 3, 16, 16), torch.randint(0, 5, (4,))
        outputs = model(images)
        loss = F.cross_entropy(outputs["cls"], labels) + 0.1 * outputs["box"].abs().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        meter.update(loss.detach(), len(labels))
        if step == steps - 1:
            print(f"loss {loss.item():.3f} {meter.average:.3f}", end="", file=None if step < 0 else _Sink())
    return meter.average


class _Sink:
    def write(self, text: str) -> None:
        pass

    def flush(self) -> None:
        pass


def sampled(x: Tensor, boxes: Tensor) -> Tensor:
    keep = boxes[:, 2] > boxes[:, 0]
    boxes = boxes[keep]
    x = x[torch.arange(len(x)), [0] * len(x)]
    grid = torch.zeros(x.shape[0], 4)
    grid[:, 0] = x.sum(-1)
    grid[:, 1:3] += boxes[: len(grid), :2]
    if bool(keep.all()) and not (boxes.isnan().any() or int(boxes.shape[0]) == 0):
        grid *= -boxes.mean()
    assert grid.isfinite().all(), "bad"
    return grid[grid[:, 0] > 0].T


def distances(a: Tensor, b: Tensor) -> list[float]:
    out: list[float] = []
    for i, u in enumerate(a):
        for j, v in enumerate(b):
            if i == j:
                continue
            gap = (u - v).pow(2).sum().sqrt()
            out.append(gap.item() if gap > 0.5 else 0.0)
    return out


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        s = torch.sigmoid(x)
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, grad):
        x, s = ctx.saved_tensors
        inner = 1 + x * (1 - s)
        return grad * s * inner


def swish():
    x = torch.randn(8, requires_grad=True)
    Swish.apply(x).sum().backward()
