"""Swin transformer: attention in windows, every second time shifted, with a bias by relative position."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..blocks import Grid, TransformerBlock, to_windows
from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job, top_classes


class ShiftedBlock(TransformerBlock):
    """Windows moved by half their size; tokens that only the wrapping brings together do not see each other."""

    mask: Tensor

    def __init__(self, dim: int, heads: int, *, grid: Grid, window: int) -> None:
        super().__init__(dim, heads, grid=grid, window=window)
        self.shift = window // 2
        self.register_buffer("mask", shift_mask(grid, window, self.shift), persistent=False)

    def attend(self, x: Tensor, mask: Tensor | None) -> Tensor:
        mask = self.mask.repeat(len(x), 1, 1, 1)
        return self._roll(super().attend(self._roll(x, -self.shift), mask), self.shift)

    def _roll(self, x: Tensor, by: int) -> Tensor:
        assert self.grid is not None
        return torch.roll(x.unflatten(1, self.grid), (by, by), (1, 2)).flatten(1, 2)


def shift_mask(grid: Grid, window: int, shift: int) -> Tensor:
    """(windows, 1, window², window²): 0 where two tokens may see each other, else -100."""
    rows, columns = (torch.arange(side) for side in grid)
    down, across = ((at >= len(at) - window).long() + (at >= len(at) - shift).long() for at in (rows, columns))
    region = to_windows((3 * down[:, None] + across).view(1, -1, 1), grid, window).squeeze(-1)
    return torch.where(region[:, :, None] == region[:, None, :], 0.0, -100.0).unsqueeze(1)


class PatchMerging(nn.Module):
    def __init__(self, dim: int, grid: Grid) -> None:
        super().__init__()
        self.grid = grid
        self.norm = nn.LayerNorm(4 * dim)
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        height, width = self.grid
        x = x.view(-1, height // 2, 2, width // 2, 2, x.shape[-1]).transpose(2, 3)
        return self.reduction(self.norm(x.flatten(3).flatten(1, 2)))


class Swin(nn.Module):
    def __init__(self, side: int, dim: int, depths: tuple[int, ...], heads: int, window: int, classes: int) -> None:
        super().__init__()
        grid = (side // 4, side // 4)
        self.normalize = Normalize()
        self.patch_embed = nn.Linear(3 * 16, dim)
        self.patch_norm = nn.LayerNorm(dim)
        layers: list[nn.Module] = []
        for stage, depth in enumerate(depths):
            if stage:
                layers.append(PatchMerging(dim, grid))
                dim, heads, grid = 2 * dim, 2 * heads, (grid[0] // 2, grid[1] // 2)
            for number in range(depth):
                kind = ShiftedBlock if number % 2 and grid[0] > window else TransformerBlock
                layers.append(kind(dim, heads, grid=grid, window=window))
        self.layers = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, image: Tensor) -> Tensor:
        patches = F.pixel_unshuffle(self.normalize(image), 4).flatten(2).transpose(1, 2)
        x = self.layers(self.patch_norm(self.patch_embed(patches)))
        return self.head(self.norm(x).mean(1))


def make(rng: random.Random, training: bool) -> Job:
    """Two or three stages of two to four blocks, windows of 4x4 or 8x8 tokens."""
    side, window = rng.choice([(64, 4), (96, 4), (128, 8), (64, 8)])
    dim, heads = rng.choice([(48, 3), (64, 2), (96, 3)]) if side < 128 else (48, 3)
    depths = rng.choice([(2, 2), (2, 4), (2, 2, 2)]) if window == 4 and side == 64 else (2, 2)
    classes = rng.choice([48, 64, 96])
    return make_job(
        "swin",
        Swin(side, dim, depths, heads, window, classes),
        training,
        choose_batch_size(rng, beside=((2 * window - 1) ** 2,)),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (draw.label(classes),),
        loss=lambda logits, targets: F.cross_entropy(logits, targets[0], label_smoothing=0.1),
        postprocess=top_classes,
        channels_last=False,
    )


FAMILY = Family("swin", "classification", make)
