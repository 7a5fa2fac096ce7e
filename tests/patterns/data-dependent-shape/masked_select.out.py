# at: total = torch.masked_select(d, d > 0).sum()
from torch import masked_select, nn
import torch


def hinge(a):
    d = (a - 0.5).abs() - 0.25
    total = torch.where(d > 0, d, 0).sum()
    return total


def run():
    return hinge(torch.linspace(0, 1, 9))
