# at: return self.act(self.conv(x))
# line: m.inplace = True
# fix: unsafe
import torch.nn as nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.act = nn.SiLU()

    def forward(self, x):
        return self.act(self.conv(x))


def initialize(net):
    for m in net.modules():
        t = type(m)
        if t is nn.BatchNorm2d:
            m.eps = 1e-3
        elif t in {nn.Hardswish, nn.LeakyReLU, nn.ReLU, nn.SiLU}:
            m.inplace = True
