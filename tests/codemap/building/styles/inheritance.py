"""Classes that derive from layers and from one another, mixins, class attributes, constructors that pass on."""

from abc import ABC, abstractmethod

import torch
from torch import nn


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class SamePadConv(nn.Conv2d):
    def __init__(self, *args, extra=1, **kwargs):
        super().__init__(*args, **kwargs)
        self.gain = nn.Parameter(torch.ones(self.out_channels, 1, 1) * extra)
        self.fan_in = self.in_channels * self.kernel_size[0] * self.kernel_size[1]
        self.register_buffer("mask", torch.zeros(self.weight.shape))


class FreezeMixin:
    def freeze(self):
        for p in self.parameters():
            p.requires_grad = False
        return self


class Base(nn.Module, ABC):
    block = None
    width = 8

    def __init__(self, depth=2):
        super().__init__()
        self.stem = self.make_stem()
        self.blocks = nn.Sequential(*[self.block(self.width) for _ in range(depth)])

    @abstractmethod
    def make_stem(self): ...

    @staticmethod
    def norm(width):
        return LayerNorm2d(width)

    def forward(self, x):
        return self.blocks(self.stem(x))


class Block(nn.Module):
    def __init__(self, width, *, ratio: int = 2):
        super().__init__()
        self.up = SamePadConv(width, width * ratio, 3, padding=1)
        self.down = SamePadConv(width * ratio, width, 1, extra=2)
        self.norm = Base.norm(width)

    def forward(self, x):
        return self.norm(self.down(self.up(x)))


class Wide(FreezeMixin, Base):
    block = Block
    width = 12

    def __init__(self, *args, classes=3, **kwargs):
        super().__init__(*args, **kwargs)
        self.head = nn.Linear(self.width, classes)
        del self.stem.extra

    def make_stem(self):
        stem = nn.Sequential()
        stem.add_module("conv", nn.Conv2d(3, self.width, 4, 4))
        stem.extra = nn.Linear(1, 1)
        stem.append(self.norm(self.width))
        return stem

    def forward(self, x):
        return self.head(super().forward(x).mean((-2, -1)))


model = Wide(3, classes=9).freeze().eval()
example = torch.randn(1, 3, 32, 32)
