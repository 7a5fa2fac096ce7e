"""EfficientNet-like: MBConv with squeeze-and-excitation and SiLU, stochastic depth."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job, top_classes


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int, reduced: int) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(channels, reduced, 1)
        self.act = nn.SiLU()
        self.expand = nn.Conv2d(reduced, channels, 1)
        self.gate = nn.Sigmoid()

    def forward(self, x: Tensor) -> Tensor:
        scale = x.mean((2, 3), keepdim=True)
        return x * self.gate(self.expand(self.act(self.reduce(scale))))


class DropPath(nn.Module):
    """Drops whole residual branches of single samples while training."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.keep = 1 - probability

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.keep == 1:
            return x
        return x * x.new_empty((x.shape[0], 1, 1, 1)).bernoulli_(self.keep).div_(self.keep)


class MBConv(nn.Module):
    def __init__(self, c_in: int, c_out: int, kernel: int, stride: int, expand: int, drop: float) -> None:
        super().__init__()
        mid = c_in * expand
        self.body = nn.Sequential(
            nn.Conv2d(c_in, mid, 1, bias=False),
            nn.BatchNorm2d(mid, eps=1e-3),
            nn.SiLU(),
            nn.Conv2d(mid, mid, kernel, stride, kernel // 2, groups=mid, bias=False),
            nn.BatchNorm2d(mid, eps=1e-3),
            nn.SiLU(),
            SqueezeExcite(mid, max(8, c_in // 4)),
            nn.Conv2d(mid, c_out, 1, bias=False),
            nn.BatchNorm2d(c_out, eps=1e-3),
        )
        self.drop_path = DropPath(drop)
        self.has_skip = stride == 1 and c_in == c_out

    def forward(self, x: Tensor) -> Tensor:
        return x + self.drop_path(self.body(x)) if self.has_skip else self.body(x)


class EfficientNet(nn.Module):
    def __init__(self, widths: tuple[int, ...], depths: tuple[int, ...], expand: int, drop: float, classes: int):
        super().__init__()
        self.normalize = Normalize()
        stem = 16
        self.stem = nn.Sequential(
            nn.Conv2d(3, stem, 3, 2, 1, bias=False), nn.BatchNorm2d(stem, eps=1e-3), nn.SiLU(inplace=False)
        )
        stages, c_in = [], stem
        for index, (width, depth) in enumerate(zip(widths, depths, strict=True)):
            kernel = 5 if index % 2 else 3
            blocks = []
            for i in range(depth):
                blocks.append(MBConv(c_in, width, kernel, 1 if i else 2, expand, drop * index / len(widths)))
                c_in = width
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.Sequential(*stages)
        self.head = nn.Sequential(nn.Conv2d(c_in, 256, 1, bias=False), nn.BatchNorm2d(256, eps=1e-3), nn.SiLU())
        self.dropout = nn.Dropout(0.2)
        self.classifier = nn.Linear(256, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.head(self.stages(self.stem(self.normalize(x))))
        return self.classifier(self.dropout(x.mean((2, 3))))


def rmsprop(parameters) -> torch.optim.Optimizer:
    return torch.optim.RMSprop(parameters, lr=1e-4, alpha=0.9, momentum=0.9, foreach=True)


def make(rng: random.Random, training: bool) -> Job:
    """Three stages of two to four blocks, expansion 4 or 6."""
    widths = rng.choice([(24, 48, 96), (32, 64, 96), (32, 48, 128)])
    depths = rng.choice([(2, 2, 2), (2, 3, 3), (1, 3, 4)])
    side = rng.choice([64, 96])
    classes = rng.choice([32, 64, 144])
    return make_job(
        "efficientnet",
        EfficientNet(widths, depths, rng.choice([4, 6]), rng.choice([0.0, 0.2]), classes),
        training,
        choose_batch_size(rng, at_most=11),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (draw.label(classes),),
        loss=lambda logits, targets: F.cross_entropy(logits, targets[0], label_smoothing=0.1),
        postprocess=top_classes,
        make_optimizer=rmsprop,
    )


FAMILY = Family("efficientnet", "classification", make)
