# at: y = self.conv(x)
# confirmed: no
from torch import nn


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv2d(c, c, 3, padding=1)
        self.norm = nn.BatchNorm2d(c)

    def forward(self, x):
        y = self.conv(x)
        return self.norm(y) * y
