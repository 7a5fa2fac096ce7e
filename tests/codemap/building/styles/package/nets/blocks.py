import torch.nn as nn

WIDTHS = {"tiny": (8, 16), "small": (12, 24, 48)}


class ConvBlock(nn.Module):
    def __init__(self, cin, cout, norm=nn.BatchNorm2d):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, stride=2, padding=1, bias=norm is nn.Identity)
        self.norm = norm(cout)
        self.act = nn.SiLU()

    def forward(self, x):
        return self.act(self.norm(self.conv(x)))
