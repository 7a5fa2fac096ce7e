# at: return [self.proj(x) for x in clips]
from torch import nn


class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Conv3d(3, 64, (2, 16, 16), (2, 16, 16))

    def forward(self, clips):
        return [self.proj(x) for x in clips]
