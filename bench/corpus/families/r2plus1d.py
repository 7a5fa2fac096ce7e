"""R(2+1)D: every 3D convolution as one over space and one over time."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..family import Family
from ..job import Job
from ..making import choose_batch_size, make_job, top_classes

Stride = tuple[int, int]
"""Over time, and over space."""
STRIDES: tuple[Stride, ...] = ((1, 1), (2, 2), (1, 2))
"""Of the stages. At least four frames remain: of fewer, oneDNN's bfloat16 gradients are not always finite."""


class Conv2Plus1D(nn.Sequential):
    def __init__(self, in_planes: int, out_planes: int, midplanes: int, stride: Stride = (1, 1)) -> None:
        super().__init__(
            nn.Conv3d(in_planes, midplanes, (1, 3, 3), (1, stride[1], stride[1]), (0, 1, 1), bias=False),
            nn.BatchNorm3d(midplanes),
            nn.ReLU(inplace=True),
            nn.Conv3d(midplanes, out_planes, (3, 1, 1), (stride[0], 1, 1), (1, 0, 0), bias=False),
        )


class BasicBlock(nn.Module):
    def __init__(self, inplanes: int, planes: int, stride: Stride = (1, 1)) -> None:
        super().__init__()
        midplanes = 3 * planes // 2
        self.conv1 = nn.Sequential(
            *Conv2Plus1D(inplanes, planes, midplanes, stride), nn.BatchNorm3d(planes), nn.ReLU(inplace=True)
        )
        self.conv2 = nn.Sequential(*Conv2Plus1D(planes, planes, midplanes), nn.BatchNorm3d(planes))
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module = nn.Identity()
        if inplanes != planes:
            conv = nn.Conv3d(inplanes, planes, 1, (stride[0], stride[1], stride[1]), bias=False)
            self.downsample = nn.Sequential(conv, nn.BatchNorm3d(planes))

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.conv2(self.conv1(x)) + self.downsample(x))


class VideoResNet(nn.Module):
    mean: Tensor

    def __init__(self, width: int, layers: tuple[int, ...], num_classes: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.43, 0.39, 0.38]).view(1, 3, 1, 1, 1))
        self.stem = nn.Sequential(
            nn.Conv3d(3, 24, (1, 7, 7), (1, 2, 2), (0, 3, 3), bias=False),
            nn.BatchNorm3d(24),
            nn.ReLU(inplace=True),
            nn.Conv3d(24, width, (3, 1, 1), (1, 1, 1), (1, 0, 0), bias=False),
            nn.BatchNorm3d(width),
            nn.ReLU(inplace=True),
        )
        blocks, inplanes = [], width
        for stage, count in enumerate(layers):
            planes = width << stage
            for number in range(count):
                blocks.append(BasicBlock(inplanes, planes, STRIDES[stage] if number == 0 else (1, 1)))
                inplanes = planes
        self.layers = nn.Sequential(*blocks)
        self.avgpool = nn.AdaptiveAvgPool3d(1)
        self.fc = nn.Linear(inplanes, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layers(self.stem(x / 255 - self.mean))
        return self.fc(self.avgpool(x).flatten(1))


def make(rng: random.Random, training: bool) -> Job:
    """Width 16 to 32, three stages of one or two blocks, 8 frames of 32 to 64 pixels."""
    width, side = rng.choice([(16, 64), (24, 48), (32, 32), (32, 48)])
    layers = rng.choice([(1, 1, 1), (1, 1, 2), (1, 2, 2)])
    num_classes = rng.choice([48, 64, 96])
    return make_job(
        "r2plus1d",
        VideoResNet(width, layers, num_classes),
        training,
        choose_batch_size(rng, at_most=5 if side > 32 else 7),
        inputs=lambda draw: (draw.image(3, 8, side, side),),
        targets=lambda draw: (draw.label(num_classes),),
        loss=lambda logits, targets: F.cross_entropy(logits, targets[0], label_smoothing=0.1),
        postprocess=top_classes,
    )


FAMILY = Family("r2plus1d", "video", make)
