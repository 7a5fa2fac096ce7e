# at: y = self.act(self.norm2(self.conv2(y)))
# device: cpu
# fix: unsafe
import torch
from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, width, cardinality):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, groups=cardinality, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.act(self.conv1(x))
        y = self.act(self.norm2(self.conv2(y.contiguous(memory_format=torch.channels_last))))
        return x + y
