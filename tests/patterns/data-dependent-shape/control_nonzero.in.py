# at: idx = torch.nonzero(mask).squeeze(1)
import torch


def pick(mask):
    idx = torch.nonzero(mask).squeeze(1)
    return idx
