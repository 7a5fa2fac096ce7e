# at: e.mul_(d).add_(src[k], alpha=1 - d)
import copy

import torch
from torch import nn


class Averaged:
    def __init__(self, net, d):
        self.ema = copy.deepcopy(net).eval()
        self.d = d

    def update(self, net):
        d = self.d
        with torch.no_grad():
            src = net.state_dict()
            pairs = [(e, src[k]) for k, e in self.ema.state_dict().items() if e.dtype.is_floating_point]
            torch._foreach_lerp_([old for old, _ in pairs], [new for _, new in pairs], 1 - d)


def run():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 2, 1))
    averaged = Averaged(net, 0.9)
    for _ in range(3):
        with torch.no_grad():
            for p in net.parameters():
                p.add_(torch.rand_like(p))
        averaged.update(net)
    return averaged.ema.state_dict()
