"""DeepLabV3+: dilated residual stages, pyramid pooling over several dilations, a light decoder."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job, mask_of_classes


def conv_bn_relu(cin, cout, k=3, stride=1, dilation=1):
    pad = dilation * (k // 2)
    return nn.Sequential(
        nn.Conv2d(cin, cout, k, stride, pad, dilation, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)
    )


class DilatedBlock(nn.Module):
    def __init__(self, cin, cout, stride=1, dilation=1):
        super().__init__()
        self.body = nn.Sequential(
            conv_bn_relu(cin, cout, 3, stride, dilation),
            nn.Conv2d(cout, cout, 3, 1, dilation, dilation, bias=False),
            nn.BatchNorm2d(cout),
        )
        self.skip = nn.Identity()
        if stride > 1 or cin != cout:
            self.skip = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


class ASPP(nn.Module):
    def __init__(self, cin, cout, rates):
        super().__init__()
        self.branches = nn.ModuleList([conv_bn_relu(cin, cout, 1), *(conv_bn_relu(cin, cout, 3, 1, r) for r in rates)])
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(cin, cout, 1), nn.ReLU())
        self.project = nn.Sequential(conv_bn_relu((len(rates) + 2) * cout, cout, 1), nn.Dropout(0.1))

    def forward(self, x):
        pooled = self.pool(x).expand(-1, -1, *x.shape[-2:])
        return self.project(torch.cat([*(branch(x) for branch in self.branches), pooled], 1))


class DeepLabV3Plus(nn.Module):
    def __init__(self, w, depth, rates, nclass):
        super().__init__()
        self.normalize = Normalize()
        self.stem = conv_bn_relu(3, w, 3, 2)
        self.low = nn.Sequential(DilatedBlock(w, 2 * w, 2), *(DilatedBlock(2 * w, 2 * w) for _ in range(depth)))
        self.mid = nn.Sequential(DilatedBlock(2 * w, 4 * w, 2), *(DilatedBlock(4 * w, 4 * w) for _ in range(depth)))
        self.high = nn.Sequential(*(DilatedBlock(4 * w, 4 * w, dilation=2 << i) for i in range(depth)))
        self.aspp = ASPP(4 * w, 2 * w, rates)
        self.low_proj = conv_bn_relu(2 * w, w, 1)
        self.decoder = nn.Sequential(conv_bn_relu(3 * w, 2 * w), nn.Conv2d(2 * w, nclass, 1))

    def forward(self, x):
        size = x.shape[-2:]
        low = self.low(self.stem(self.normalize(x)))
        deep = self.aspp(self.high(self.mid(low)))
        deep = F.interpolate(deep, size=low.shape[-2:], mode="bilinear", align_corners=False)
        out = self.decoder(torch.cat([deep, self.low_proj(low)], 1))
        return F.interpolate(out, size=size, mode="bilinear", align_corners=False)


def entropy(logits: Tensor, targets: tuple[Tensor, ...]) -> Tensor:
    return F.cross_entropy(logits, targets[0].long(), ignore_index=255)


def make(rng: random.Random, training: bool) -> Job:
    """Width 16 to 32, one or two blocks a stage, dilations up to 12, images of 64 to 96 pixels."""
    w, depth = rng.choice([(16, 1), (16, 2), (24, 1), (24, 2), (32, 1)])
    rates = rng.choice([(2, 4, 6), (3, 6, 9), (2, 4, 8, 12)])
    side = rng.choice([64, 96])
    nclass = rng.choice([8, 16, 24])
    return make_job(
        "deeplab",
        DeepLabV3Plus(w, depth, rates, nclass),
        training,
        choose_batch_size(rng, at_most=11),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (draw.mask(nclass, side, side),),
        loss=entropy,
        postprocess=mask_of_classes,
    )


FAMILY = Family("deeplab", "segmentation", make)
