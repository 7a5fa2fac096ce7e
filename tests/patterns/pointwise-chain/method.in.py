# at: x = (x - grey) * contrast + grey
# fix: unsafe
import torch
import torch.nn as nn


class Jitter(nn.Module):
    def forward(self, x, contrast):
        grey = x.mean(1, keepdim=True)
        x = (x - grey) * contrast + grey
        return x.clamp(0, 1).pow(1.1)
