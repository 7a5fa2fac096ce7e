# at: patch * self.window
# line: self.register_buffer("window"
import numpy as np
import torch
from torch import nn


class Windowed(nn.Module):
    def __init__(self, size):
        super().__init__()
        window = np.outer(np.hanning(size), np.hanning(size))
        self.register_buffer("window", torch.from_numpy(window))

    def forward(self, patch):
        patch = patch * self.window
        return patch.sum()


def run():
    torch.manual_seed(0)
    return Windowed(8)(torch.rand(2, 8, 8)).float()
