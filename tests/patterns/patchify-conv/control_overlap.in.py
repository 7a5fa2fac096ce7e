# at: x = self.proj(x)
# confirmed: no
from torch import nn


class OverlapEmbed(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.proj = nn.Conv2d(3, dim, kernel_size=7, stride=4, padding=3)

    def forward(self, x):
        x = self.proj(x)
        return x.flatten(2).transpose(1, 2)
