# at: mixed = x[perm]
# line: perm = torch.randperm
# fix: unsafe
import torch


def mixup(x, lam):
    perm = torch.randperm(x.size(0))
    mixed = x[perm]
    return lam * x + (1 - lam) * mixed
