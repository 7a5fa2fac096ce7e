"""Pyramid vision transformer v2: attention to a reduced map, depthwise convolutions in the feed-forward part."""

from __future__ import annotations

import random

from torch import Tensor, nn
from torch.nn import functional as F

from ..blocks import CrossAttention, Grid
from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job, top_classes


def to_map(tokens: Tensor, grid: Grid) -> Tensor:
    """(batch, tokens, dim) -> (batch, dim, height, width), channels last in memory."""
    return tokens.transpose(1, 2).unflatten(2, grid)


def to_tokens(image: Tensor) -> Tensor:
    return image.flatten(2).transpose(1, 2)


class SpatialReduction(nn.Module):
    def __init__(self, dim: int, ratio: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(dim, dim, ratio, ratio)
        self.norm = nn.LayerNorm(dim)

    def forward(self, tokens: Tensor, grid: Grid) -> Tensor:
        return self.norm(to_tokens(self.conv(to_map(tokens, grid))))


class FeedForward(nn.Module):
    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.dwconv = nn.Conv2d(hidden, hidden, 3, padding=1, groups=hidden)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden, dim)

    def forward(self, tokens: Tensor, grid: Grid) -> Tensor:
        return self.fc2(self.act(to_tokens(self.dwconv(to_map(self.fc1(tokens), grid)))))


class Block(nn.Module):
    def __init__(self, dim: int, heads: int, ratio: int, grid: Grid) -> None:
        super().__init__()
        self.grid = grid
        self.norm1 = nn.LayerNorm(dim)
        self.reduction = SpatialReduction(dim, ratio)
        self.attn = CrossAttention(dim, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.ffn = FeedForward(dim, 4 * dim)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        x = x + self.attn(y, self.reduction(y, self.grid))
        return x + self.ffn(self.norm2(x), self.grid)


class Stage(nn.Module):
    def __init__(self, inputs: int, dim: int, depth: int, heads: int, ratio: int, grid: Grid, stride: int) -> None:
        super().__init__()
        self.grid = grid
        self.patch_embed = nn.Conv2d(inputs, dim, 2 * stride - 1, stride, stride - 1)
        self.patch_norm = nn.LayerNorm(dim)
        self.blocks = nn.Sequential(*(Block(dim, heads, ratio, grid) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim)

    def forward(self, image: Tensor) -> Tensor:
        tokens = self.blocks(self.patch_norm(to_tokens(self.patch_embed(image))))
        return to_map(self.norm(tokens), self.grid)


class PVT(nn.Module):
    def __init__(self, side: int, dims: tuple[int, int, int], depths: tuple[int, int, int], classes: int) -> None:
        super().__init__()
        self.normalize = Normalize()
        stages, inputs = [], 3
        for index, (dim, depth) in enumerate(zip(dims, depths, strict=True)):
            cell = side // (4 << index)
            stages.append(Stage(inputs, dim, depth, dim // 32, 4 >> index, (cell, cell), 2 if index else 4))
            inputs = dim
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(inputs, classes)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.stages(self.normalize(image)).mean((2, 3)))


def make(rng: random.Random, training: bool) -> Job:
    """Three stages of one to three blocks."""
    dims = rng.choice([(32, 64, 128), (64, 128, 192), (32, 96, 192)])
    depths = rng.choice([(1, 2, 2), (2, 2, 2), (1, 1, 3)])
    side = 64 if dims[0] == 64 else rng.choice([64, 96])
    classes = rng.choice([64, 96, 128])
    return make_job(
        "pvt",
        PVT(side, dims, depths, classes),
        training,
        choose_batch_size(rng, at_most=11),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (draw.label(classes),),
        loss=lambda logits, targets: F.cross_entropy(logits, targets[0]),
        postprocess=top_classes,
    )


FAMILY = Family("pvt", "classification", make)
