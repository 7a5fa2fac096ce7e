# at: y = self.act(x)
# line: self.act = act_layer(inplace=True)
# fix: unsafe
# torch: 2.1
import torch.nn as nn


class PreAct(nn.Module):
    """The input is overwritten, and added afterwards: out of place gives other numbers."""

    def __init__(self, c, act_layer=nn.SiLU):
        super().__init__()
        self.act = act_layer()
        self.conv = nn.Conv2d(c, c, 1)

    def forward(self, x):
        y = self.act(x)
        return self.conv(y) + x
