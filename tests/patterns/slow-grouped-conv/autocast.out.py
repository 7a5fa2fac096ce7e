# at: x = self.dw(x + self.pos)
# device: cuda 7.5
# fix: unsafe
import torch
import torch.nn as nn


class Mixer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dw = nn.Conv2d(dim, dim, 7, 1, 3, 1, dim)
        self.pos = nn.Parameter(torch.zeros(1, dim, 1, 1))

    def forward(self, x):
        with torch.autocast("cuda", enabled=False):
            x = self.dw((x + self.pos).float())
        return x.relu()


def step(model, x):
    with torch.autocast("cuda", dtype=torch.float16):
        return model(x).mean()
