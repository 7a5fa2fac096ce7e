"""Stacked hourglass: down, up again, and once more with the heat maps so far."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..blocks import ConvNormAct, Residual
from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job
from .hrnet import JOINTS, decode, heatmap_loss


class Bottleneck(Residual):
    def __init__(self, width: int) -> None:
        half = width // 2
        super().__init__(
            ConvNormAct(width, half, 1), ConvNormAct(half, half), ConvNormAct(half, width, 1, act=nn.Identity)
        )


class Hourglass(nn.Module):
    """One level, and the levels below it."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.skip = Bottleneck(width)
        self.pool = nn.MaxPool2d(2)
        self.before = Bottleneck(width)
        self.inner: nn.Module = Hourglass(width, depth - 1) if depth > 1 else Bottleneck(width)
        self.after = Bottleneck(width)

    def forward(self, x: Tensor) -> Tensor:
        low = self.after(self.inner(self.before(self.pool(x))))
        return self.skip(x) + F.interpolate(low, scale_factor=2.0, mode="nearest")


class StackedHourglass(nn.Module):
    def __init__(self, width: int, depth: int, stacks: int) -> None:
        super().__init__()
        self.normalize = Normalize()
        self.stem = nn.Sequential(ConvNormAct(3, width // 2, 7, 2), ConvNormAct(width // 2, width, 3, 2))
        self.glasses = nn.ModuleList(Hourglass(width, depth) for _ in range(stacks))
        self.features = nn.ModuleList(ConvNormAct(width, width, 1) for _ in range(stacks))
        self.heads = nn.ModuleList(nn.Conv2d(width, JOINTS, 1) for _ in range(stacks))
        self.back = nn.ModuleList(nn.Conv2d(width + JOINTS, width, 1) for _ in range(stacks - 1))

    def forward(self, image: Tensor) -> list[Tensor]:
        """The heat maps of each stack; when it does not train, of the last."""
        x, found = self.stem(self.normalize(image)), []
        for stack, glass in enumerate(self.glasses):
            features = self.features[stack](glass(x))
            maps = self.heads[stack](features)
            found.append(maps)
            if stack < len(self.back):
                x = x + self.back[stack](torch.cat((features, maps), 1))
        return found if self.training else found[-1:]


def make(rng: random.Random, training: bool) -> Job:
    """One to three stacks of width 48 to 96, images of 64 or 96 pixels."""
    width, stacks = rng.choice([(48, 2), (64, 1), (64, 2), (96, 1), (48, 3)])
    side = rng.choice([64, 96])
    return make_job(
        "hourglass",
        StackedHourglass(width, rng.choice([2, 3]), stacks),
        training,
        choose_batch_size(rng, at_most=11),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (draw.uniform(JOINTS, 2), draw.label(2, JOINTS).float()),
        loss=lambda outputs, targets: torch.stack([heatmap_loss(maps, targets) for maps in outputs]).sum(),
        postprocess=lambda outputs: decode(outputs[-1]),
    )


FAMILY = Family("hourglass", "pose", make)
