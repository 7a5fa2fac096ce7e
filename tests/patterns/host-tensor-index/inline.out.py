# at: x[torch.arange(
import torch


def diagonal(x):
    return x[torch.arange(len(x), device=x.device), torch.arange(len(x), device=x.device).long()] * 2


def run():
    return diagonal(torch.arange(9.0).view(3, 3))
