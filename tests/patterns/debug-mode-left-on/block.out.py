# at: net(x).sum().backward()
# line: with autograd.detect_anomaly():
import torch
from torch import autograd


def step(net, x):
    with autograd.set_detect_anomaly(False):
        net(x).sum().backward()


def run():
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 2)
    step(net, torch.rand(8, 4))
    return [p.grad for p in net.parameters()]
