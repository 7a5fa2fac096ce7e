"""Functions that build and return modules, with defaults, star arguments and closures."""

import copy
import math

import torch
import torch.nn as nn


def conv_bn(cin, cout, k=3, s=1, act=True, **kw):
    layers = [nn.Conv2d(cin, cout, k, s, k // 2, bias=False, **kw), nn.BatchNorm2d(cout)]
    if act:
        layers.append(nn.ReLU6(inplace=True))
    return nn.Sequential(*layers)


def make_divisible(v, divisor=8):
    new = max(divisor, int(v + divisor / 2) // divisor * divisor)
    return new + divisor if new < 0.9 * v else new


def get_activation(name):
    return getattr(nn, name)()


def clones(module, n):
    return nn.ModuleList([copy.deepcopy(module) for _ in range(n)])


class InvertedResidual(nn.Module):
    def __init__(self, cin, cout, stride, expand):
        super().__init__()
        hidden = int(round(cin * expand))
        self.use_res = stride == 1 and cin == cout
        layers = []
        if expand != 1:
            layers.append(conv_bn(cin, hidden, k=1))
        layers.extend([conv_bn(hidden, hidden, s=stride, groups=hidden), nn.Conv2d(hidden, cout, 1, 1, 0, bias=False)])
        layers.append(nn.BatchNorm2d(cout))
        self.conv = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.conv(x) if self.use_res else self.conv(x)


def build(width=1.0, settings=None):
    settings = settings or [[1, 16, 1, 1], [6, 24, 2, 2]]
    channels = make_divisible(32 * width)
    features = [conv_bn(3, channels, s=2)]
    for t, c, n, s in settings:
        out = make_divisible(c * width)
        for i in range(n):
            features.append(InvertedResidual(channels, out, s if i == 0 else 1, expand=t))
            channels = out
    features += [get_activation("Hardswish"), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    net = nn.Sequential(*features)
    net.add_module("classifier", nn.Linear(channels, 2 ** int(math.log2(8))))
    return net


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = build(0.5)
        self.layers = clones(nn.Linear(8, 8), 3)

    def forward(self, x):
        x = self.one(x)
        for layer in self.layers:
            x = layer(x)
        return x


model = Pair()
example = torch.randn(2, 3, 32, 32)
