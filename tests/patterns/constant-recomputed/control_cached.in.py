# at: return torch.arange(n).float().sin()
# confirmed: no
import functools

import torch


@functools.lru_cache
def table(n):
    return torch.arange(n).float().sin()
