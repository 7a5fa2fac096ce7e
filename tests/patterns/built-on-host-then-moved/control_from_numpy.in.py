# at: x = torch.from_numpy(a).to(device)
# confirmed: no
import torch


def sample(a, device):
    x = torch.from_numpy(a).to(device)
    return x
