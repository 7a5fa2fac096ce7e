# at: x = x.view(b, groups, c // groups, h, w)
# fix: unsafe
from torch import channels_last, nn


def channel_shuffle(x, groups):
    b, c, h, w = x.shape
    x = x.view(b, groups, c // groups, h, w)
    x = x.transpose(1, 2)
    return x.reshape(b, c, h, w).contiguous(memory_format=channels_last)


class Unit(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv2d(c, c, 1, groups=2)

    def forward(self, x):
        return channel_shuffle(self.conv(x), 2)


model = Unit(8).to(memory_format=channels_last)
