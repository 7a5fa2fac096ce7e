# slug: compile-inactive
# verdict: fault
# at: use_compile = cfg.compile and dev.type == "cuda" and not cfg.multi_scale
# at: net = torch.compile(net) if use_compile else net
# fix: none
# note: compile is on by default, and so is what turns it off
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    compile: bool = True
    multi_scale: bool = True
    steps: int = 10


class Detector(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3)
        self.head = nn.Conv2d(width, 5, 1)

    def forward(self, x):
        x = self.stem(x)
        x = x * torch.sigmoid(x) + 0.1 * x.tanh()
        return self.head(x)


def train(cfg, dev):
    net = Detector().to(dev)
    use_compile = cfg.compile and dev.type == "cuda" and not cfg.multi_scale
    net = torch.compile(net) if use_compile else net
    for _ in range(cfg.steps):
        images = torch.rand(8, 3, 224, 224, device=dev)
        loss = net(images).square().mean()
        loss.backward()
