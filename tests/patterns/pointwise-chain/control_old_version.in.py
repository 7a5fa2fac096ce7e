# at: return (x * 2 + 1).exp().log1p()
# torch: 1.13
import torch


def head(x):
    return (x * 2 + 1).exp().log1p()
