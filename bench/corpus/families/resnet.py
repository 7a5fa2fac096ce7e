"""ResNet with bottleneck or basic blocks."""

from __future__ import annotations

import random

from torch import Tensor, nn
from torch.nn import functional as F

from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job, top_classes


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inplanes: int, planes: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = shortcut(inplanes, planes, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return self.relu(out + self.downsample(x))


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inplanes: int, planes: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = nn.Conv2d(planes, planes * 4, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(planes * 4)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = shortcut(inplanes, planes * 4, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        return self.relu(out + self.downsample(x))


def shortcut(inplanes: int, outplanes: int, stride: int) -> nn.Module:
    if stride == 1 and inplanes == outplanes:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(inplanes, outplanes, 1, stride, bias=False), nn.BatchNorm2d(outplanes))


class ResNet(nn.Module):
    def __init__(self, block: type[BasicBlock | Bottleneck], layers: list[int], width: int, classes: int) -> None:
        super().__init__()
        self.normalize = Normalize()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        stages, inplanes = [], width
        for stage, count in enumerate(layers):
            planes = width << stage
            for number in range(count):
                stages.append(block(inplanes, planes, 2 if stage and not number else 1))
                inplanes = planes * block.expansion
        self.blocks = nn.Sequential(*stages)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inplanes, classes)

    def forward(self, image: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(self.normalize(image)))))
        return self.fc(self.avgpool(self.blocks(x)).flatten(1))


def make(rng: random.Random, training: bool) -> Job:
    """ResNet-18 to -50 of a third to half their width, images of 64 to 96 pixels."""
    block = rng.choice([BasicBlock, Bottleneck])
    width = rng.choice([24, 32]) if block is BasicBlock else 16
    layers = rng.choice([[2, 2, 2, 2], [2, 3, 3, 2]])
    side = rng.choice([64, 96])
    classes = rng.choice([64, 96, 144])
    return make_job(
        "resnet",
        ResNet(block, layers, width, classes),
        training,
        choose_batch_size(rng),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (draw.label(classes),),
        loss=lambda logits, targets: F.cross_entropy(logits, targets[0], label_smoothing=0.1),
        postprocess=top_classes,
    )


FAMILY = Family("resnet", "classification", make)
