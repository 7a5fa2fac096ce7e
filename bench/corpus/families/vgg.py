"""VGG: plain 3x3 convolutions, pooling, and a wide classifier."""

from __future__ import annotations

import random

import torch
from torch import nn
from torch.nn import functional as F

from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job, top_classes


def vgg(width: int, repeats: list[int], hidden: int, classes: int, side: int, dropout: float) -> nn.Sequential:
    layers: list[nn.Module] = [Normalize()]
    channels = 3
    for stage, count in enumerate(repeats):
        out = width << min(stage, 3)
        for _ in range(count):
            layers += [nn.Conv2d(channels, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True)]
            channels = out
        layers.append(nn.MaxPool2d(2))
    features = channels * (side >> len(repeats)) ** 2
    classifier = nn.Sequential(
        nn.Linear(features, hidden),
        nn.ReLU(inplace=True),
        nn.Dropout(dropout),
        nn.Linear(hidden, hidden),
        nn.ReLU(inplace=True),
        nn.Dropout(dropout),
        nn.Linear(hidden, classes),
    )
    return nn.Sequential(*layers, nn.Flatten(), classifier)


def sgd(parameters) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, weight_decay=5e-4, foreach=True)


def make(rng: random.Random, training: bool) -> Job:
    """VGG-11 to -16 in width 16 or 24, images of 48 or 64 pixels."""
    width, side = rng.choice([(16, 64), (24, 48), (24, 64)])
    repeats = rng.choice([[1, 1, 2, 2], [2, 2, 2, 2], [2, 2, 3, 3]])
    classes = rng.choice([48, 72, 96])
    model = vgg(width, repeats, rng.choice([256, 512]), classes, side, dropout=rng.choice([0.2, 0.5]))
    return make_job(
        "vgg",
        model,
        training,
        choose_batch_size(rng, at_most=11),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (draw.label(classes),),
        loss=lambda logits, targets: F.cross_entropy(logits, targets[0]),
        postprocess=top_classes,
        make_optimizer=sgd,
    )


FAMILY = Family("vgg", "classification", make)
