"""A U-Net: lists that grow in loops, reversed, zipped with their skips."""

import torch
from torch import nn
from torch.nn import functional as F


class DoubleConv(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(
            nn.Conv2d(cin, cout, 3, padding=1, bias=False),
            nn.BatchNorm2d(cout),
            nn.ReLU(inplace=True),
            nn.Conv2d(cout, cout, 3, padding="same"),
            nn.InstanceNorm2d(cout, affine=True),
            nn.PReLU(cout),
        )


class UNet(nn.Module):
    def __init__(self, cin=3, classes=5, features=(8, 16, 32)):
        super().__init__()
        self.downs = nn.ModuleList()
        self.ups = nn.ModuleList()
        self.pool = nn.MaxPool2d(2)
        channels = cin
        for f in features:
            self.downs.append(DoubleConv(channels, f))
            channels = f
        self.bottleneck = DoubleConv(features[-1], features[-1] * 2)
        for f in reversed(features):
            self.ups.extend([nn.ConvTranspose2d(f * 2, f, 2, 2), DoubleConv(f * 2, f)])
        self.head = nn.Conv2d(features[0], classes, 1)

    def forward(self, x):
        skips = []
        for down in self.downs:
            x = down(x)
            skips.append(x)
            x = self.pool(x)
        x = self.bottleneck(x)
        skips = skips[::-1]
        for i in range(0, len(self.ups), 2):
            x = self.ups[i](x)
            skip = skips[i // 2]
            if x.shape != skip.shape:
                x = F.interpolate(x, size=skip.shape[2:])
            x = self.ups[i + 1](torch.cat((skip, x), dim=1))
        return self.head(x)


model = UNet()
example = torch.randn(1, 3, 32, 48)
