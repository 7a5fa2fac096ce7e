# at: y = self.mix(x.flatten(2)).reshape(x.shape)
# fix: unsafe
import torch
import torch.nn as nn


class Mixer(nn.Module):
    def __init__(self, pixels):
        super().__init__()
        self.mix = nn.Linear(pixels, pixels)

    def forward(self, x):
        y = self.mix(x.flatten(2)).reshape(x.shape)
        return x + y
