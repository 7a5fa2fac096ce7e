# slug: handwritten-norm-or-activation, pointwise-chain
# verdict: control
# fix: none
# note: F.batch_norm gains 3 % here, and keeps its input for the backward
import torch
import torch.nn as nn


class FrozenBatchNorm2d(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.register_buffer("scale", torch.rand(channels) + 0.5)
        self.register_buffer("shift", torch.rand(channels))

    def forward(self, x):
        return x * self.scale.view(1, -1, 1, 1) + self.shift.view(1, -1, 1, 1)


class Stage(nn.Sequential):
    def __init__(self, channels):
        conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        super().__init__(conv, FrozenBatchNorm2d(channels), nn.ReLU())


def main(profiler):
    torch.manual_seed(0)
    body = nn.Sequential(Stage(16), Stage(16), Stage(16))
    images = torch.rand(4, 16, 64, 64)
    for _ in range(6):
        body(images).mean().backward()
        profiler.step()
