# at: x = self.refine(x)
# line: layers = [nn.Conv2d
# fix: unsafe
import torch
import torch.nn as nn


class ConvUnit(nn.Sequential):
    def __init__(self, width, act=True):
        layers = [nn.Conv2d(width, width, 3, bias=False), nn.SiLU()]
        if act:
            layers.append(nn.Hardswish())
        super().__init__(*layers)


class Decoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.refine = ConvUnit(width)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.refine(x)
        return self.relu(x)
