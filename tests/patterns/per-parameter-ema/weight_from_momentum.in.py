# at: avg.lerp_(live, 1.0 - self.momentum)
import copy

import torch
from torch import nn


class SlowCopy:
    def __init__(self, net, momentum=0.9):
        self.momentum = momentum
        self.shadow = copy.deepcopy(net).eval()

    @torch.no_grad()
    def refresh(self, net):
        for avg, live in zip(self.shadow.parameters(), net.parameters()):
            avg.lerp_(live, 1.0 - self.momentum)


def run():
    torch.manual_seed(0)
    net = nn.Linear(3, 2)
    slow = SlowCopy(net)
    nn.init.ones_(net.weight)
    slow.refresh(net)
    return list(slow.shadow.parameters())
