"""SlowFast: few frames with many channels beside many frames with few."""

from __future__ import annotations

import random

import torch
from torch import nn
from torch.nn import functional as F

from ..family import Family
from ..job import Job
from ..making import choose_batch_size, make_job, top_classes

ALPHA = 4
"""Frames of the fast pathway for each of the slow one."""


class Conv3dBN(nn.Sequential):
    def __init__(self, cin, cout, k, stride=(1, 1, 1), relu=True):
        conv = nn.Conv3d(cin, cout, k, stride, (k[0] // 2, k[1] // 2, k[2] // 2), bias=False)
        super().__init__(conv, nn.BatchNorm3d(cout), *([nn.ReLU(inplace=True)] if relu else []))


class ResBlock(nn.Module):
    def __init__(self, cin, inner, cout, temporal, stride):
        super().__init__()
        self.branch = nn.Sequential(
            Conv3dBN(cin, inner, (temporal, 1, 1)),
            Conv3dBN(inner, inner, (1, 3, 3), (1, stride, stride)),
            Conv3dBN(inner, cout, (1, 1, 1), relu=False),
        )
        self.shortcut = nn.Identity()
        if stride > 1 or cin != cout:
            self.shortcut = Conv3dBN(cin, cout, (1, 1, 1), (1, stride, stride), relu=False)

    def forward(self, x):
        return F.relu(self.shortcut(x) + self.branch(x))


class Pathway(nn.Module):
    def __init__(self, width, stem_kernel, temporals, extra, depth):
        super().__init__()
        self.stem = Conv3dBN(3, width, (stem_kernel, 5, 5), (1, 2, 2))
        self.pool = nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1))
        self.stages = nn.ModuleList()
        cin = width
        for i, temporal in enumerate(temporals):
            inner, cout = width << i, width << (i + 1)
            blocks = [ResBlock(cin + extra * (width << i) // 8, inner, cout, temporal, 2 if i else 1)]
            blocks += [ResBlock(cout, inner, cout, temporal, 1) for _ in range(depth - 1)]
            self.stages.append(nn.Sequential(*blocks))
            cin = cout


class SlowFast(nn.Module):
    def __init__(self, width, depth, num_classes):
        super().__init__()
        fast = width // 4
        self.slow = Pathway(width, 1, (1, 1, 3), 4, depth)
        self.fast = Pathway(fast, 5, (3, 3, 3), 0, depth)
        self.lateral = nn.ModuleList(
            nn.Conv3d(fast << i, (width << i) // 2, (5, 1, 1), (ALPHA, 1, 1), (2, 0, 0)) for i in range(3)
        )
        self.dropout = nn.Dropout(0.5)
        self.projection = nn.Linear((width << 3) + (fast << 3), num_classes)

    def forward(self, clip):
        """(batch, 3, frames, height, width), bytes."""
        clip = clip / 127.5 - 1
        slow = self.slow.pool(self.slow.stem(clip[:, :, ::ALPHA]))
        fast = self.fast.pool(self.fast.stem(clip))
        for lateral, slow_stage, fast_stage in zip(self.lateral, self.slow.stages, self.fast.stages, strict=True):
            slow = slow_stage(torch.cat([slow, lateral(fast)], 1))
            fast = fast_stage(fast)
        pooled = torch.cat([slow.mean((2, 3, 4)), fast.mean((2, 3, 4))], 1)
        return self.projection(self.dropout(pooled))


def _sgd(parameters) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-4, foreach=True)


def make(rng: random.Random, training: bool) -> Job:
    """Slow width 32 or 64, 16 or 24 frames of 32 to 64 pixels."""
    width, frames, side = rng.choice([(32, 16, 48), (32, 16, 64), (32, 24, 48), (64, 16, 32)])
    num_classes = rng.choice([48, 96, 128])
    model = SlowFast(width, rng.choice([1, 2]), num_classes)
    return make_job(
        "slowfast",
        model,
        training,
        choose_batch_size(rng, at_most=7 if side == 64 else 11, beside=(model.projection.in_features,)),
        inputs=lambda draw: (draw.image(3, frames, side, side),),
        targets=lambda draw: (draw.label(num_classes),),
        loss=lambda logits, targets: F.cross_entropy(logits, targets[0]),
        postprocess=top_classes,
        make_optimizer=_sgd,
    )


FAMILY = Family("slowfast", "video", make)
