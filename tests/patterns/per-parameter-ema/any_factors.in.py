# at: t.mul_(keep)
import copy

import torch
from torch import nn


@torch.no_grad()
def soft_update(target, source, tau, keep):
    for t, s in zip(target.parameters(), source.parameters()):
        t.mul_(keep)
        t.add_(s.detach(), alpha=tau)  # tau and keep need not add up to one


def run():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 2, 1))
    target = copy.deepcopy(net)
    for _ in range(3):
        with torch.no_grad():
            for p in net.parameters():
                p.add_(torch.rand_like(p))
        soft_update(target, net, 0.1, 0.8)
    return list(target.parameters())
