# at: v *= decay
import copy

import torch
from torch import nn


def update(ema, model, decay):
    msd = model.state_dict()
    for k, v in ema.state_dict().items():
        if not v.dtype.is_floating_point:
            continue
        v *= decay
        v += (1 - decay) * msd[k].detach()


def run():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 2, 1))
    averaged = copy.deepcopy(net)
    for _ in range(3):
        with torch.no_grad():
            for p in net.parameters():
                p.add_(torch.rand_like(p))
        update(averaged, net, 0.5)
    return averaged.state_dict()
