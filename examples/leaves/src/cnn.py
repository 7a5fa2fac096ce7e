"""The student: a small ConvNeXt-like network."""

import torch
from torch import nn


class ChannelNorm(nn.Module):
    """LayerNorm over the channels of an NCHW tensor."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x):
        x = x.permute(0, 2, 3, 1).contiguous()
        x = self.norm(x)
        return x.permute(0, 3, 1, 2).contiguous()


class Block(nn.Module):
    def __init__(self, channels, kernel=3):
        super().__init__()
        self.spatial = nn.Conv2d(channels, channels, kernel, padding=kernel // 2, groups=channels)
        self.norm = ChannelNorm(channels)
        self.expand = nn.Conv2d(channels, 3 * channels, 1)
        self.act = nn.GELU()
        self.project = nn.Conv2d(3 * channels, channels, 1)

    def forward(self, x):
        y = self.norm(self.spatial(x))
        y = self.project(self.act(self.expand(y)))
        return x + y


class LeafCNN(nn.Module):
    def __init__(self, classes, widths=(24, 48, 96), depths=(2, 2, 6)):
        super().__init__()
        layers = [nn.Conv2d(3, widths[0], 4, stride=4), ChannelNorm(widths[0])]
        for stage, (width, depth) in enumerate(zip(widths, depths)):
            if stage:
                layers += [ChannelNorm(widths[stage - 1]), nn.Conv2d(widths[stage - 1], width, 2, stride=2)]
            layers += [Block(width) for _ in range(depth)]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x):
        x = self.body(x)
        return self.head(torch.mean(x, dim=(2, 3)))
