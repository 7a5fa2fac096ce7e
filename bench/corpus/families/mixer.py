"""MLP-Mixer."""

from __future__ import annotations

import random

from torch import Tensor, nn
from torch.nn import functional as F

from ..blocks import Mlp
from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job, top_classes


class MixerBlock(nn.Module):
    """Mixes over tokens, then over channels."""

    def __init__(self, tokens: int, dim: int, tokens_hidden: int, channels_hidden: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.mlp_tokens = Mlp(tokens, tokens_hidden)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp_channels = Mlp(dim, channels_hidden)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mlp_tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.mlp_channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, grid: int, patch: int, dim: int, depth: int, classes: int) -> None:
        super().__init__()
        self.patch = patch
        self.normalize = Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
        self.stem = nn.Linear(3 * patch**2, dim)
        self.blocks = nn.Sequential(*(MixerBlock(grid**2, dim, dim // 2, 4 * dim) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, image: Tensor) -> Tensor:
        patches = F.pixel_unshuffle(self.normalize(image), self.patch).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(self.stem(patches))).mean(1))


def make(rng: random.Random, training: bool) -> Job:
    """Four to eight blocks of width 128 to 256 over 64 or 144 patches."""
    grid, patch = rng.choice([(8, 8), (8, 16), (12, 8)])
    dim, depth = rng.choice([(128, 8), (192, 6), (256, 4)])
    classes = rng.choice([64, 96, 192])
    return make_job(
        "mixer",
        Mixer(grid, patch, dim, depth, classes),
        training,
        choose_batch_size(rng, at_most=11),
        inputs=lambda draw: (draw.image(3, grid * patch, grid * patch),),
        targets=lambda draw: (draw.label(classes),),
        loss=lambda logits, targets: F.cross_entropy(logits, targets[0]),
        postprocess=top_classes,
        channels_last=False,
    )


FAMILY = Family("mixer", "classification", make)
