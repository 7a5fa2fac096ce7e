"""TimeSformer: in each block attention over time for every place, then over space for every frame."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job, top_classes


class Attention(nn.Module):
    """Over the last axis but one, whatever stands before it."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).view(B, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4).unbind()
        out = F.scaled_dot_product_attention(q, k, v)
        return self.proj(out.transpose(1, 2).reshape(B, N, C))


class DividedBlock(nn.Module):
    def __init__(self, dim, num_heads, frames, places):
        super().__init__()
        self.frames, self.places = frames, places
        self.temporal_norm = nn.LayerNorm(dim)
        self.temporal_attn = Attention(dim, num_heads)
        self.norm1 = nn.LayerNorm(dim)
        self.attn = Attention(dim, num_heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        """(batch, frames, places, dim)."""
        B, T, P, C = x.shape
        y = self.temporal_norm(x).transpose(1, 2).reshape(B * P, T, C)
        x = x + self.temporal_attn(y).view(B, P, T, C).transpose(1, 2)
        x = x + self.attn(self.norm1(x).view(B * T, P, C)).view(B, T, P, C)
        return x + self.mlp(self.norm2(x))


class TimeSformer(nn.Module):
    def __init__(self, frames, grid, patch, dim, depth, num_heads, num_classes):
        super().__init__()
        self.patch = patch
        self.normalize = Normalize((0.45, 0.45, 0.45), (0.225, 0.225, 0.225))
        self.patch_embed = nn.Linear(3 * patch**2, dim)
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, 1, grid**2, dim))
        self.time_embed = nn.Parameter(0.02 * torch.randn(1, frames, 1, dim))
        self.blocks = nn.ModuleList(DividedBlock(dim, num_heads, frames, grid**2) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, clip: Tensor) -> Tensor:
        patches = F.pixel_unshuffle(self.normalize(clip), self.patch).flatten(3).transpose(2, 3)
        x = self.patch_embed(patches) + self.pos_embed + self.time_embed
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean((1, 2)))


def make(rng: random.Random, training: bool) -> Job:
    """Two to four blocks of width 96 to 192, 4 or 8 frames of 16 or 36 patches."""
    dim, num_heads, depth = rng.choice([(96, 3, 4), (128, 4, 3), (192, 6, 2)])
    frames, grid, patch = rng.choice([(4, 4, 8), (8, 4, 8), (4, 6, 8), (4, 4, 16)])
    num_classes = rng.choice([48, 64, 96])
    side = grid * patch
    return make_job(
        "timesformer",
        TimeSformer(frames, grid, patch, dim, depth, num_heads, num_classes),
        training,
        choose_batch_size(rng, at_most=7),
        inputs=lambda draw: (draw.image(frames, 3, side, side),),
        targets=lambda draw: (draw.label(num_classes),),
        loss=lambda logits, targets: F.cross_entropy(logits, targets[0]),
        postprocess=top_classes,
        channels_last=False,
    )


FAMILY = Family("timesformer", "video", make)
