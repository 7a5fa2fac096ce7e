# at: y = self.conv(x)
# device: cuda 8.0
from torch import nn


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv2d(c, c, 3, padding=1, groups=c)

    def forward(self, x):
        y = self.conv(x)
        return y


model = Block(64).half().cuda()
