# at: x[rows, labels]
# confirmed: no
import torch


def pick(x, labels):
    rows = torch.arange(x.shape[0], device=x.device)
    return x[rows, labels]
