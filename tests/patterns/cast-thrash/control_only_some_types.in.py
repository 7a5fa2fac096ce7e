# at: x = x.to(torch.float32)
import torch
from torch.nn.functional import interpolate


def resize(x, size):
    dtype = x.dtype
    need_cast = dtype not in (torch.float32, torch.float64)
    if need_cast:
        x = x.to(torch.float32)
    x = interpolate(x, size=size)
    if need_cast:
        x = x.to(dtype=dtype)
    return x
