# at: optimizer.step()
# confirmed: yes
import torch
from torch import nn

OPTIMIZERS = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}


def build_optimizer(net, cfg):
    cfg = dict(cfg)
    kind = OPTIMIZERS[cfg.pop("type")]
    return kind(net.parameters(), **cfg)


def train(cfg):
    net = nn.Linear(2, 2)
    optimizer = build_optimizer(net, cfg)
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
