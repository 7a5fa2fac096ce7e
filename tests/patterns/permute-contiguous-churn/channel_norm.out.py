# at: return x.permute(0, 3, 1, 2).contiguous()
# caller: outs = model(x)
# line: x = x.permute(0, 2, 3, 1).contiguous()
# device: cpu
# fix: unsafe
import torch
import torch.nn as nn


class ChannelNorm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm = nn.LayerNorm(c)

    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        x = self.norm(x)
        return x.permute(0, 3, 1, 2)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1 = nn.Sequential(nn.Conv2d(4, 8, 3), ChannelNorm(8))

    def forward(self, x):
        return self.d1(x)


def fit(model, steps):
    for step in range(steps):
        x, y = batch(step)
        outs = model(x.contiguous(memory_format=torch.channels_last))


model = UNet().to(memory_format=torch.channels_last)
fit(model, 5)
