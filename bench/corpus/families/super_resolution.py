"""EDSR/RCAN-like: residual blocks with channel attention at low resolution, then pixel shuffle."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..family import Family
from ..job import Job
from ..making import choose_batch_size, make_job
from ..marks import to_host


class ChannelAttention(nn.Module):
    def __init__(self, n_feats, reduction):
        super().__init__()
        self.conv_du = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(n_feats, n_feats // reduction, 1),
            nn.ReLU(inplace=True),
            nn.Conv2d(n_feats // reduction, n_feats, 1),
            nn.Sigmoid(),
        )

    def forward(self, x):
        return x * self.conv_du(x)


class RCAB(nn.Module):
    def __init__(self, n_feats, attention):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(n_feats, n_feats, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(n_feats, n_feats, 3, padding=1)
        )
        self.attention = ChannelAttention(n_feats, 4) if attention else nn.Identity()

    def forward(self, x):
        return x + self.attention(self.body(x))


class SuperResolution(nn.Module):
    def __init__(self, n_feats, n_blocks, scale, attention):
        super().__init__()
        self.head = nn.Conv2d(3, n_feats, 3, padding=1)
        self.body = nn.Sequential(*(RCAB(n_feats, attention) for _ in range(n_blocks)))
        self.body_tail = nn.Conv2d(n_feats, n_feats, 3, padding=1)
        self.upsample = nn.Sequential(nn.Conv2d(n_feats, 8 * scale**2, 3, padding=1), nn.PixelShuffle(scale))
        self.tail = nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, lr):
        x = self.head(lr / 255)
        x = x + self.body_tail(self.body(x))
        return self.tail(self.upsample(x))


def charbonnier(sr: Tensor, targets: tuple[Tensor]) -> Tensor:
    return F.smooth_l1_loss(sr.float(), targets[0] / 255, beta=0.01)


def to_image(sr: Tensor) -> Tensor:
    return to_host(sr.clamp(0, 1).mul(255).round().to(torch.uint8))


def make(rng: random.Random, training: bool) -> Job:
    """Four to eight blocks of 32 to 64 features on crops of 16 to 32 pixels, twice to four times as large."""
    n_feats, n_blocks, crop = rng.choice([(32, 8, 32), (48, 4, 32), (48, 8, 24), (64, 4, 24)])
    scale = rng.choice([2, 3, 4])
    return make_job(
        "super_resolution",
        SuperResolution(n_feats, n_blocks, scale, attention=rng.random() < 0.6),
        training,
        choose_batch_size(rng, at_most=11),
        inputs=lambda draw: (draw.image(3, crop, crop),),
        targets=lambda draw: (draw.image(3, crop * scale, crop * scale),),
        loss=charbonnier,
        postprocess=to_image,
    )


FAMILY = Family("super_resolution", "generation", make)
