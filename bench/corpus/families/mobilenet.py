"""MobileNetV2/V3-like: inverted residuals with depthwise convolutions."""

from __future__ import annotations

import random

from torch import Tensor, nn
from torch.nn import functional as F

from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job, top_classes


def conv_bn(inp: int, oup: int, k: int = 1, s: int = 1, groups: int = 1, act: type[nn.Module] | None = None):
    layers = [nn.Conv2d(inp, oup, k, s, k // 2, groups=groups, bias=False), nn.BatchNorm2d(oup)]
    return nn.Sequential(*layers) if act is None else nn.Sequential(*layers, act())


class InvertedResidual(nn.Module):
    def __init__(self, inp: int, oup: int, expand: int, k: int, s: int, act: type[nn.Module]) -> None:
        super().__init__()
        hidden = inp * expand
        self.use_res = s == 1 and inp == oup
        self.expand = conv_bn(inp, hidden, act=act)
        self.depthwise = conv_bn(hidden, hidden, k, s, groups=hidden, act=act)
        self.project = conv_bn(hidden, oup)

    def forward(self, x: Tensor) -> Tensor:
        y = self.project(self.depthwise(self.expand(x)))
        return x + y if self.use_res else y


# channels, repeats, stride, kernel
SETTINGS = {
    "v2": [(24, 2, 2, 3), (32, 3, 2, 3), (64, 3, 2, 3), (96, 2, 1, 3)],
    "v3": [(24, 2, 2, 3), (48, 3, 2, 5), (96, 3, 2, 5)],
    "lite": [(16, 2, 1, 3), (32, 3, 2, 3), (72, 3, 2, 5)],
}


class MobileNet(nn.Module):
    def __init__(self, setting: str, expand: int, act: type[nn.Module], num_classes: int) -> None:
        super().__init__()
        self.normalize = Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
        self.stem = conv_bn(3, 16, 3, 2, act=act)
        blocks, inp = [], 16
        for oup, repeats, stride, k in SETTINGS[setting]:
            for i in range(repeats):
                blocks.append(InvertedResidual(inp, oup, expand, k, 1 if i else stride, act))
                inp = oup
        self.blocks = nn.Sequential(*blocks)
        self.head = conv_bn(inp, 384, act=act)
        self.classifier = nn.Linear(384, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.head(self.blocks(self.stem(self.normalize(x))))
        return self.classifier(x.mean((2, 3)))


def make(rng: random.Random, training: bool) -> Job:
    """Expansion 3 to 6, ReLU6 or Hardswish, images of 64 to 128 pixels."""
    setting = rng.choice(sorted(SETTINGS))
    act = rng.choice([nn.ReLU6, nn.Hardswish])
    side = rng.choice([64, 96])
    num_classes = rng.choice([32, 64, 128])
    return make_job(
        "mobilenet",
        MobileNet(setting, rng.choice([3, 4, 6]), act, num_classes),
        training,
        choose_batch_size(rng, at_most=11),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (draw.label(num_classes),),
        loss=lambda logits, targets: F.cross_entropy(logits, targets[0]),
        postprocess=top_classes,
    )


FAMILY = Family("mobilenet", "classification", make)
