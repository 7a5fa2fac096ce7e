# at: return x + F.silu(y, inplace=self.inplace)
# confirmed: no
import torch
import torch.nn.functional as F
from torch import nn


class Residual(nn.Module):
    def __init__(self, c, inplace=False):
        super().__init__()
        self.conv, self.inplace = nn.Conv2d(c, c, 1), inplace

    def forward(self, x):
        y = self.conv(x)
        return x + F.silu(y, inplace=self.inplace)
