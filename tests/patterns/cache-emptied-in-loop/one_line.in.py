# at: collect(); empty_cache()
import torch
from gc import collect
from torch.cuda import empty_cache


def step(net, x):
    out = net(x)
    collect(); empty_cache()
    return out


def run():
    torch.manual_seed(0)
    return step(torch.nn.Linear(3, 1), torch.rand(2, 3))
