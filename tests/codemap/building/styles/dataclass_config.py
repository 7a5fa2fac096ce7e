"""A configuration as a dataclass, with derived fields and nested parts."""

from dataclasses import dataclass, field, replace
from enum import Enum

import torch
from torch import nn


class Act(Enum):
    RELU = "relu"
    GELU = "gelu"


@dataclass
class StemConfig:
    width: int = 12
    kernel: int = 5


@dataclass
class Config:
    classes: int
    widths: list[int] = field(default_factory=lambda: [16, 32])
    act: Act = Act.GELU
    dropout: float = 0.0
    stem: StemConfig = field(default_factory=StemConfig)
    total: int = field(init=False, default=0)

    def __post_init__(self):
        self.total = sum(self.widths)

    @property
    def last(self):
        return self.widths[-1]

    @classmethod
    def small(cls, **changes):
        return cls(classes=4, **changes)


class Net(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        act = {Act.RELU: nn.ReLU, Act.GELU: nn.GELU}[config.act]
        self.stem = nn.Conv2d(3, config.stem.width, config.stem.kernel, padding=config.stem.kernel // 2)
        layers = []
        width = config.stem.width
        for out in config.widths:
            layers += [nn.Conv2d(width, out, 3, 2, 1), nn.BatchNorm2d(out), act()]
            width = out
        if config.dropout > 0:
            layers.append(nn.Dropout(config.dropout))
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(config.last, config.classes)
        self.aux = nn.Linear(config.total, 2)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean((2, 3)))


model = Net(replace(Config.small(widths=[8, 16, 24]), dropout=0.1))
example = torch.randn(2, 3, 32, 32)
