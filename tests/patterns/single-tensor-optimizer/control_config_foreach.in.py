# at: self.optim.step()
# confirmed: no
# device: cpu
# torch: 2.6
from dataclasses import dataclass, field

import torch


@dataclass
class OptimConfig:
    lr: float = 2e-3
    foreach: bool = True


@dataclass
class Config:
    optim: OptimConfig = field(default_factory=OptimConfig)


class Trainer:
    def __init__(self, net, cfg):
        self.net = net
        self.optim = torch.optim.AdamW(net.parameters(), lr=cfg.optim.lr, foreach=cfg.optim.foreach)

    def training_step(self, x):
        self.net(x).square().sum().backward()
        self.optim.step()

