# at: outputs.append(net(batch))
# fix: unsafe
import torch
from torch import nn


def collect(net, batches):
    outputs = []
    for batch in batches:
        outputs.append(net(batch))
    return torch.cat(outputs)


def run():
    torch.manual_seed(0)
    return collect(nn.Linear(4, 2), list(torch.rand(3, 2, 4))).detach()
