"""Classes by name in a registry, built from a nested dict."""

from collections import OrderedDict

import torch
from torch import nn


class Registry:
    def __init__(self, name):
        self.name = name
        self._classes = {}

    def register(self, name=None):
        def wrap(cls):
            self._classes[name or cls.__name__] = cls
            return cls

        return wrap

    def build(self, cfg, **extra):
        cfg = dict(cfg)
        kind = cfg.pop("type")
        if kind not in self._classes:
            raise KeyError(kind)
        return self._classes[kind](**cfg, **extra)


MODELS = Registry("models")
NORMS = {"BN": nn.BatchNorm2d, "GN": lambda c: nn.GroupNorm(4, c)}


@MODELS.register()
class Backbone(nn.Module):
    def __init__(self, depth, width=8, norm="BN"):
        super().__init__()
        for i in range(depth):
            self.add_module(f"conv{i}", nn.Conv2d(3 if i == 0 else width, width, 3, padding=1))
            self.add_module("norm{}".format(i), NORMS[norm](width))
        self.depth = depth

    def forward(self, x):
        for i in range(self.depth):
            x = getattr(self, f"norm{i}")(getattr(self, f"conv{i}")(x))
        return x


@MODELS.register("head")
class Head(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.net = nn.Sequential(
            OrderedDict([("pool", nn.AdaptiveAvgPool2d(1)), ("flat", nn.Flatten()), ("fc", nn.Linear(width, classes))])
        )

    def forward(self, x):
        return self.net(x)


@MODELS.register("detector")
class Detector(nn.Module):
    def __init__(self, backbone, head):
        super().__init__()
        self.backbone = MODELS.build(backbone)
        self.head = MODELS.build(head, classes=6)

    def forward(self, x):
        return self.head(self.backbone(x))


cfg = dict(
    type="detector",
    backbone=dict(type="Backbone", depth=3, norm="GN"),
    head=dict(type="head", width=8),
)
model = MODELS.build(cfg)
example = torch.randn(1, 3, 16, 16)
