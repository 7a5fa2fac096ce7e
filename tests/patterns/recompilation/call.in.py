# at: logits = net(crop)
# line: return torch.compile(
import torch
from torch import nn


def build():
    net = nn.Conv2d(3, 4, 3)
    return torch.compile(net, backend="eager")  # crops differ in size


def infer(crops):
    net = build()
    out = []
    for crop in crops:
        logits = net(crop)
        out.append(logits.mean())
    return out


def run():
    torch.manual_seed(0)
    return infer([torch.rand(1, 3, n, n) for n in (6, 7)])
