# at: y = self.mix(x)
# confirmed: no
from torch import nn


class Mix(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.mix = nn.Conv2d(c, c, kernel_size=1, stride=1)

    def forward(self, x):
        y = self.mix(x)
        return y
