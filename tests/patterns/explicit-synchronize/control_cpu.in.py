# at: torch.cuda.synchronize()
# device: cpu
# confirmed: no
import torch


def step(x):
    torch.cuda.synchronize()
    return x
