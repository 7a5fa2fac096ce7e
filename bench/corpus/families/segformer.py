"""SegFormer: a pyramid of transformer stages, and a decoder of linear layers only."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job, mask_of_classes
from .deeplab import entropy
from .pvt import Stage


class SegFormer(nn.Module):
    def __init__(self, side: int, dims: tuple[int, ...], depths: tuple[int, ...], embed: int, classes: int) -> None:
        super().__init__()
        self.normalize = Normalize()
        self.stages = nn.ModuleList()
        inputs = 3
        for index, (dim, depth) in enumerate(zip(dims, depths, strict=True)):
            cell = side // (4 << index)
            self.stages.append(Stage(inputs, dim, depth, dim // 32, 4 >> index, (cell, cell), 2 if index else 4))
            inputs = dim
        self.linear = nn.ModuleList(nn.Conv2d(dim, embed, 1) for dim in dims)
        self.fuse = nn.Conv2d(embed * len(dims), embed, 1, bias=False)
        self.norm = nn.BatchNorm2d(embed)
        self.act = nn.ReLU()
        self.classifier = nn.Conv2d(embed, classes, 1)

    def forward(self, image: Tensor) -> Tensor:
        x, maps = self.normalize(image), []
        for stage, linear in zip(self.stages, self.linear, strict=True):
            x = stage(x)
            maps.append(linear(x))
        size = maps[0].shape[-2:]
        larger = [F.interpolate(each, size=size, mode="bilinear", align_corners=False) for each in maps[1:]]
        x = self.act(self.norm(self.fuse(torch.cat((maps[0], *larger), 1))))
        return F.interpolate(self.classifier(x), size=image.shape[-2:], mode="bilinear", align_corners=False)


def make(rng: random.Random, training: bool) -> Job:
    """Three stages of one or two blocks, images of 64 or 96 pixels."""
    dims = rng.choice([(32, 64, 128), (64, 128, 192), (32, 96, 192)])
    depths = rng.choice([(1, 2, 2), (1, 1, 2), (2, 2, 2)])
    side = 64 if dims[0] == 64 else rng.choice([64, 96])
    classes = rng.choice([8, 16, 24])
    return make_job(
        "segformer",
        SegFormer(side, dims, depths, rng.choice([64, 96, 128]), classes),
        training,
        choose_batch_size(rng, at_most=11),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (draw.mask(classes, side, side),),
        loss=entropy,
        postprocess=mask_of_classes,
    )


FAMILY = Family("segformer", "segmentation", make)
