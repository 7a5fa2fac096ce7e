# at: self.optim.step()
# line: self.optim = torch.optim.AdamW(
# device: cpu
# torch: 2.6
from dataclasses import dataclass, field

import torch


@dataclass
class OptimConfig:
    lr: float = 2e-3
    foreach: bool = False


@dataclass
class Config:
    optim: OptimConfig = field(default_factory=OptimConfig)


class Trainer:
    def __init__(self, net, cfg):
        self.net = net
        self.optim = torch.optim.AdamW(net.parameters(), lr=cfg.optim.lr, fused=True)

    def training_step(self, x):
        self.net(x).square().sum().backward()
        self.optim.step()


def run():
    torch.manual_seed(0)
    trainer = Trainer(torch.nn.Linear(3, 2), Config())
    trainer.training_step(torch.rand(4, 3))
    return list(trainer.net.parameters())
