"""RegNetX/Y-like: bottlenecks of grouped convolutions, widths on a line."""

from __future__ import annotations

import random

from torch import nn
from torch.nn import functional as F

from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job, top_classes


class ConvBN(nn.Sequential):
    def __init__(self, w_in, w_out, k=1, stride=1, groups=1, relu=True):
        layers = [nn.Conv2d(w_in, w_out, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(w_out)]
        super().__init__(*layers, *([nn.ReLU(inplace=True)] if relu else []))


class XBlock(nn.Module):
    def __init__(self, w_in, w_out, stride, group_width):
        super().__init__()
        self.a = ConvBN(w_in, w_out)
        self.b = ConvBN(w_out, w_out, 3, stride, groups=w_out // group_width)
        self.c = ConvBN(w_out, w_out, relu=False)
        self.proj = ConvBN(w_in, w_out, 1, stride, relu=False) if stride > 1 or w_in != w_out else nn.Identity()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.proj(x) + self.c(self.b(self.a(x))))


class RegNet(nn.Module):
    def __init__(self, widths, depths, group_width, n_classes):
        super().__init__()
        self.normalize = Normalize()
        self.stem = ConvBN(3, 32, 3, 2)
        w_in = 32
        self.stages = nn.ModuleList()
        for width, depth in zip(widths, depths, strict=True):
            blocks = [XBlock(w_in, width, 2, group_width)]
            blocks += [XBlock(width, width, 1, group_width) for _ in range(depth - 1)]
            self.stages.append(nn.Sequential(*blocks))
            w_in = width
        self.fc = nn.Linear(w_in, n_classes)

    def forward(self, x):
        x = self.stem(self.normalize(x))
        for stage in self.stages:
            x = stage(x)
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


def make(rng: random.Random, training: bool) -> Job:
    """Group width 8 to 24, four stages up to width 288."""
    group_width, widths = rng.choice([(8, (24, 48, 96, 192)), (16, (32, 64, 144, 256)), (24, (48, 96, 192, 288))])
    depths = rng.choice([(1, 2, 3, 1), (1, 2, 2, 2), (1, 1, 4, 2)])
    side = rng.choice([64, 96])
    n_classes = rng.choice([48, 96, 128])
    return make_job(
        "regnet",
        RegNet(widths, depths, group_width, n_classes),
        training,
        choose_batch_size(rng),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (draw.label(n_classes),),
        loss=lambda logits, targets: F.cross_entropy(logits, targets[0]),
        postprocess=top_classes,
    )


FAMILY = Family("regnet", "classification", make)
