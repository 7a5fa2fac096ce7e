# at: return self.norm(self.conv(x))
from torch import nn


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv2d(c, c, 3, padding=1)
        self.norm = nn.BatchNorm2d(c)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.zeros_(m.bias)

    def forward(self, x):
        return self.norm(self.conv(x))
