# at: x[x > 1.0] -= 2
import torch


def wrap(x):
    x -= torch.where(x > 1.0, 2, 0)
    return x


def run():
    torch.manual_seed(0)
    return wrap(torch.randn(3, 5) * 2)
