# at: y = self.bn(self.conv(x))
# line: self.bn = NaiveSyncBatchNorm(width)
from torch import nn

from .norms import NaiveSyncBatchNorm


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.bn = NaiveSyncBatchNorm(width)

    def forward(self, x):
        y = self.bn(self.conv(x))
        return y.relu()
