# at: return torch.cdist(a, b)
# confirmed: no
import torch


def distances(a, b):
    return torch.cdist(a, b)
