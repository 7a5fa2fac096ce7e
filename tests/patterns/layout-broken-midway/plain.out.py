# at: x = self.conv1(x).contiguous()
# fix: unsafe
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv1 = nn.Conv2d(c, c, 3)
        self.conv2 = nn.Conv2d(c, c, 3)

    def forward(self, x):
        x = self.conv1(x).contiguous(memory_format=torch.channels_last)
        return self.conv2(x)


model = Block(8).to(memory_format=torch.channels_last)
