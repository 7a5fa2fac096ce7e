# at: return a * (1 + torch.cos(b)).sqrt() - a.exp()
# fix: unsafe
import torch.nn.functional as F
from functools import wraps

import torch


@wraps(F.relu)
@torch.compile
def mix(a, b):
    """Mix two maps."""
    return a * (1 + torch.cos(b)).sqrt() - a.exp()
