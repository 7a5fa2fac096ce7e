# at: averaged.update_parameters(net)
# line: return AveragedModel(
import copy

import torch
from torch import nn


from torch.optim.swa_utils import AveragedModel, get_ema_avg_fn


def build(net):
    return AveragedModel(net, avg_fn=get_ema_avg_fn(0.95), use_buffers=True)


def follow(net, averaged=None):
    averaged = averaged or build(net)
    averaged.update_parameters(net)


def run():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 2, 1))
    averaged = build(net)
    for _ in range(3):
        with torch.no_grad():
            for p in net.parameters():
                p.add_(torch.rand_like(p))
        follow(net, averaged)
    return list(averaged.parameters())
