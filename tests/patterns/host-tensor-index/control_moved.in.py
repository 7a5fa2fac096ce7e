# at: x[rows]
# confirmed: no
import torch


def pick(x, device):
    rows = torch.arange(4).to(device)
    return x[rows]
