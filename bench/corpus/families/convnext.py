"""ConvNeXt: depthwise 7x7, LayerNorm and an inverted bottleneck of linear layers, channels last."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job, top_classes


class LayerNorm2d(nn.LayerNorm):
    """Over the channels of (N, C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, dim: int, layer_scale: float = 1e-6) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, kernel_size=7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1 = nn.Linear(dim, 4 * dim)
        self.act = nn.GELU()
        self.pwconv2 = nn.Linear(4 * dim, dim)
        self.gamma = nn.Parameter(layer_scale * torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        y = self.dwconv(x).permute(0, 2, 3, 1)
        y = self.pwconv2(self.act(self.pwconv1(self.norm(y))))
        return x + (self.gamma * y).permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self, dims: tuple[int, ...], depths: tuple[int, ...], num_classes: int) -> None:
        super().__init__()
        self.normalize = Normalize()
        self.stem = nn.Sequential(nn.Conv2d(3, dims[0], kernel_size=4, stride=4), LayerNorm2d(dims[0], eps=1e-6))
        self.stages = nn.ModuleList()
        for i, (dim, depth) in enumerate(zip(dims, depths, strict=True)):
            blocks = [ConvNeXtBlock(dim) for _ in range(depth)]
            if i:
                down = [LayerNorm2d(dims[i - 1], eps=1e-6), nn.Conv2d(dims[i - 1], dim, kernel_size=2, stride=2)]
                blocks = [*down, *blocks]
            self.stages.append(nn.Sequential(*blocks))
        self.norm = nn.LayerNorm(dims[-1], eps=1e-6)
        self.head = nn.Linear(dims[-1], num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(self.normalize(x))
        for stage in self.stages:
            x = stage(x)
        return self.head(self.norm(x.mean([-2, -1])))


def make(rng: random.Random, training: bool) -> Job:
    """Three stages from 32, 48 or 64 channels on, images of 96 or 128 pixels."""
    dims, depths = rng.choice([((32, 64, 128), (2, 2, 4)), ((48, 96, 192), (2, 2, 3)), ((64, 128, 256), (1, 2, 2))])
    side = rng.choice([64, 96])
    num_classes = rng.choice([48, 96, 128])
    return make_job(
        "convnext",
        ConvNeXt(dims, depths, num_classes),
        training,
        choose_batch_size(rng),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (draw.label(num_classes),),
        loss=lambda logits, targets: F.cross_entropy(logits, targets[0], label_smoothing=0.1),
        postprocess=top_classes,
    )


FAMILY = Family("convnext", "classification", make)
