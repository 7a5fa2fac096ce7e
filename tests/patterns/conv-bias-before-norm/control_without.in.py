# at: return self.norm(self.conv(x))
# confirmed: no
from torch import nn


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv2d(c, c, 3, 1, 1, 1, 1, False)
        self.norm = nn.BatchNorm2d(c)

    def forward(self, x):
        return self.norm(self.conv(x))
