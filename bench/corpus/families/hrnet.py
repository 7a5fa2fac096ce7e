"""HRNet-like pose: parallel branches at several resolutions that exchange what they see; one heat map a joint."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job
from ..marks import to_host
from .resnet import BasicBlock

JOINTS = 16


class Fuse(nn.Module):
    """The first `outputs` branches each get the sum of all, brought to their size and width."""

    def __init__(self, widths: list[int], outputs: int) -> None:
        super().__init__()
        self.paths = nn.ModuleList(
            nn.ModuleList(self._path(widths, source, target) for source in range(len(widths)))
            for target in range(outputs)
        )

    @staticmethod
    def _path(widths: list[int], source: int, target: int) -> nn.Module:
        if source == target:
            return nn.Identity()
        if source > target:
            conv = nn.Conv2d(widths[source], widths[target], 1, bias=False)
            scale = nn.Upsample(scale_factor=2 ** (source - target), mode="nearest")
            return nn.Sequential(conv, nn.BatchNorm2d(widths[target]), scale)
        layers: list[nn.Module] = []
        for step in range(source, target):
            layers += [nn.Conv2d(widths[step], widths[step + 1], 3, 2, 1, bias=False), nn.BatchNorm2d(widths[step + 1])]
            if step + 1 < target:
                layers.append(nn.ReLU(inplace=True))
        return nn.Sequential(*layers)

    def forward(self, branches: list[Tensor]) -> list[Tensor]:
        fused = []
        for row in self.paths:
            first, *others = (path(x) for path, x in zip(row, branches, strict=True))  # pyright: ignore[reportArgumentType]
            for other in others:
                first = first + other
            fused.append(F.relu(first))
        return fused


class Stage(nn.Module):
    def __init__(self, widths: list[int], blocks: int, outputs: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList(nn.Sequential(*(BasicBlock(w, w) for _ in range(blocks))) for w in widths)
        self.fuse = Fuse(widths, outputs)

    def forward(self, xs: list[Tensor]) -> list[Tensor]:
        return self.fuse([branch(x) for branch, x in zip(self.branches, xs, strict=True)])


class HRNet(nn.Module):
    def __init__(self, width: int, branches: int, blocks: int) -> None:
        super().__init__()
        self.normalize = Normalize()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 32, 3, 2, 1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(inplace=True),
            nn.Conv2d(32, width, 3, 2, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
        )
        widths = [width << i for i in range(branches)]
        self.transitions = nn.ModuleList(BasicBlock(a, 2 * a, 2) for a in widths[:-1])
        self.stages = nn.ModuleList(
            Stage(widths[:count], blocks, count if count < branches else 1) for count in range(2, branches + 1)
        )
        self.final = nn.Conv2d(width, JOINTS, 1)

    def forward(self, image: Tensor) -> Tensor:
        """(batch, joints, height / 4, width / 4)."""
        xs = [self.stem(self.normalize(image))]
        for transition, stage in zip(self.transitions, self.stages, strict=True):
            xs = stage([*xs, transition(xs[-1])])
        return self.final(xs[0])


def heatmap_loss(maps: Tensor, targets: tuple[Tensor, Tensor]) -> Tensor:
    """Against Gaussians round the joints, made where the maps are; unseen joints do not count."""
    joints, visible = targets
    height, width = maps.shape[-2:]
    x = torch.arange(width, device=maps.device) - joints[..., 0, None] * width
    y = torch.arange(height, device=maps.device) - joints[..., 1, None] * height
    wanted = (x.square()[..., None, :] + y.square()[..., :, None]).div(-8).exp()
    return ((maps - wanted).square().mean((2, 3)) * visible).mean()


def decode(maps: Tensor) -> Tensor:
    """(batch, joints, 3): x, y in shares of the sides, and the score."""
    height, width = maps.shape[-2:]
    score, at = maps.float().flatten(2).max(-1)
    x, y = (at % width) / width, at.div(width, rounding_mode="floor") / height
    return to_host(torch.stack((x, y, score), -1))


def make(rng: random.Random, training: bool) -> Job:
    """Two or three branches from 16 or 24 channels on, images of 64 to 96 pixels."""
    width, branches, blocks = rng.choice([(16, 3, 1), (16, 3, 2), (24, 2, 2), (24, 3, 1), (32, 2, 1)])
    height, side = rng.choice([(96, 64), (96, 96), (128, 96)])
    return make_job(
        "hrnet",
        HRNet(width, branches, blocks),
        training,
        choose_batch_size(rng, at_most=11 if height == 96 else 7),
        inputs=lambda draw: (draw.image(3, height, side),),
        targets=lambda draw: (draw.uniform(JOINTS, 2), draw.label(2, JOINTS).float()),
        loss=heatmap_loss,
        postprocess=decode,
    )


FAMILY = Family("hrnet", "pose", make)
