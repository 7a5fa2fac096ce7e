"""ViViT-like: tubelets as tokens, a transformer over the tokens of each moment, then one over the moments."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..blocks import TransformerBlock
from ..family import Family
from ..job import Job
from ..making import choose_batch_size, make_job, top_classes

TUBELET = 2
"""Frames that a token spans."""


class VideoViT(nn.Module):
    def __init__(
        self, moments: int, grid: int, patch: int, dim: int, depth: tuple[int, int], heads: int, classes: int
    ) -> None:
        super().__init__()
        self.grid, self.patch, self.moments = grid, patch, moments
        self.embed = nn.Linear(3 * TUBELET * patch**2, dim)
        self.place = nn.Parameter(0.02 * torch.randn(1, grid**2, dim))
        self.moment = nn.Parameter(0.02 * torch.randn(1, moments, dim))
        self.spatial = nn.Sequential(*(TransformerBlock(dim, heads) for _ in range(depth[0])))
        self.temporal = nn.Sequential(*(TransformerBlock(dim, heads) for _ in range(depth[1])))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, clip: Tensor) -> Tensor:
        """(batch, frames, 3, height, width), bytes."""
        tokens = self.embed(self.tubelets(clip.float() / 127.5 - 1)) + self.place
        moments = self.spatial(tokens).mean(1).unflatten(0, (-1, self.moments)) + self.moment
        return self.head(self.norm(self.temporal(moments)).mean(1))

    def tubelets(self, clip: Tensor) -> Tensor:
        """(batch * moments, grid², values of a tubelet)."""
        batch, grid, patch = len(clip), self.grid, self.patch
        cut = clip.view(batch, self.moments, TUBELET, 3, grid, patch, grid, patch)
        return cut.permute(0, 1, 4, 6, 2, 3, 5, 7).reshape(batch * self.moments, grid**2, -1)


def make(rng: random.Random, training: bool) -> Job:
    """Two to four blocks over space and one or two over time, width 96 to 192, 4 moments of 16 or 36 tokens."""
    dim, heads = rng.choice([(96, 3), (128, 4), (192, 6)])
    grid, patch = rng.choice([(4, 8), (6, 8), (4, 16)])
    moments = rng.choice([4, 6]) if grid == 4 else 4
    classes = rng.choice([48, 64, 96])
    side = grid * patch
    return make_job(
        "video_vit",
        VideoViT(moments, grid, patch, dim, rng.choice([(2, 1), (3, 1), (3, 2), (4, 2)]), heads, classes),
        training,
        choose_batch_size(rng, at_most=11 if grid == 4 else 7),
        inputs=lambda draw: (draw.image(moments * TUBELET, 3, side, side),),
        targets=lambda draw: (draw.label(classes),),
        loss=lambda logits, targets: F.cross_entropy(logits, targets[0]),
        postprocess=top_classes,
        channels_last=False,
    )


FAMILY = Family("video_vit", "video", make)
