# at: return self.act(self.conv(x))
# line: act = partial(nn.Hardswish
# fix: unsafe
from functools import partial

import torch
import torch.nn as nn


class Unit(nn.Module):
    def __init__(self, width, act):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.act = act()

    def forward(self, x):
        return self.act(self.conv(x))


def build(width=4):
    act = partial(nn.Hardswish, inplace=True)  # saves memory
    return nn.Sequential(Unit(width, act), Unit(width, act))
