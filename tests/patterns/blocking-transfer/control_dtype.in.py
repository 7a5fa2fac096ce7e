# at: x = x.to(torch.float16)
# confirmed: no
import torch


def cast(x):
    x = x.to(torch.float16)
    return x
