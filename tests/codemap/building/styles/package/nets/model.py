import torch
from torch import nn

from . import blocks
from .blocks import ConvBlock, WIDTHS


class Pyramid(nn.Module):
    def __init__(self, size="tiny", out=8):
        super().__init__()
        widths = WIDTHS[size]
        self.stages = nn.ModuleList()
        self.lateral = nn.ModuleList()
        for cin, cout in zip((3,) + widths[:-1], widths):
            self.stages.append(ConvBlock(cin, cout))
            self.lateral.append(nn.Conv2d(cout, out, 1))
        self.final = blocks.ConvBlock(out, out, norm=nn.Identity)

    def forward(self, x):
        outs = []
        for stage, lateral in zip(self.stages, self.lateral):
            x = stage(x)
            outs.append(lateral(x))
        return [self.final(o) for o in outs]
