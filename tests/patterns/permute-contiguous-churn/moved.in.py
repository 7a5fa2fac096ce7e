# at: y = self.norm(x.movedim(1, -1).contiguous())
# caller: net(x).mean()
# device: cpu
# fix: unsafe
import torch
from torch import nn


class Gated(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm, self.conv = nn.LayerNorm(c), nn.Conv2d(c, c, 3)

    def forward(self, x):
        x = self.conv(x)
        y = self.norm(x.movedim(1, -1).contiguous())
        return torch.movedim(y, -1, 1).contiguous()


def train(steps):
    net = Gated(8)
    x = torch.randn(2, 8, 16, 16)
    for _ in range(steps):
        net(x).mean().backward()
