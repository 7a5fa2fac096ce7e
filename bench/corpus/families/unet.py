"""U-Net for segmentation."""

from __future__ import annotations

import random
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..blocks import ConvNormAct
from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job, mask_of_classes


class DoubleConv(nn.Sequential):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(ConvNormAct(in_channels, out_channels), ConvNormAct(out_channels, out_channels))


class Up(nn.Module):
    """Twice as large, beside the encoder's map of that size."""

    def __init__(self, in_channels: int, out_channels: int, transposed: bool) -> None:
        super().__init__()
        if transposed:
            self.up: nn.Module = nn.ConvTranspose2d(in_channels, out_channels, kernel_size=2, stride=2)
        else:
            scale = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
            self.up = nn.Sequential(nn.Conv2d(in_channels, out_channels, 1), scale)
        self.conv = DoubleConv(2 * out_channels, out_channels)

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        return self.conv(torch.cat([skip, self.up(x)], dim=1))


class UNet(nn.Module):
    def __init__(self, features: list[int], num_classes: int, transposed: bool) -> None:
        super().__init__()
        self.normalize = Normalize()
        self.inc = DoubleConv(3, features[0])
        self.pool = nn.MaxPool2d(2)
        self.downs = nn.ModuleList(DoubleConv(a, b) for a, b in pairwise(features))
        self.ups = nn.ModuleList(Up(a, b, transposed) for a, b in pairwise(reversed(features)))
        self.outc = nn.Conv2d(features[0], num_classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.inc(self.normalize(x))
        skips = []
        for down in self.downs:
            skips.append(x)
            x = down(self.pool(x))
        for up in self.ups:
            x = up(x, skips.pop())
        return self.outc(x)


def dice_and_entropy(logits: Tensor, targets: tuple[Tensor]) -> Tensor:
    mask = targets[0].long()
    chance = logits.float().softmax(dim=1)
    own = chance.gather(1, mask.unsqueeze(1)).squeeze(1)
    wanted = F.one_hot(mask, logits.shape[1]).permute(0, 3, 1, 2)
    sizes = chance.sum((2, 3)) + wanted.sum((2, 3))
    dice = 2 * (chance * wanted).sum((2, 3)) / sizes.clamp(min=1)
    return (1 - dice).mean() - own.clamp(min=1e-6).log().mean()


def make(rng: random.Random, training: bool) -> Job:
    """Three or four levels from 16 or 24 features on, images of 48 to 96 pixels."""
    features = rng.choice([[16, 32, 64, 128], [16, 32, 64], [24, 48, 96], [32, 64, 128]])
    side = rng.choice([48, 64]) if features[0] == 32 else rng.choice([64, 96])
    num_classes = rng.choice([8, 16])
    return make_job(
        "unet",
        UNet(features, num_classes, transposed=rng.random() < 0.5),
        training,
        choose_batch_size(rng, at_most=7),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (draw.mask(num_classes, side, side),),
        loss=dice_and_entropy,
        postprocess=mask_of_classes,
    )


FAMILY = Family("unet", "segmentation", make)
