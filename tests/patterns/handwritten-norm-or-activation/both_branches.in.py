# at: return x.mul_(x.sigmoid()) if inplace else x.mul(x.sigmoid())
# fix: unsafe
from torch.nn import functional as F


def swish(x, inplace: bool = False):
    return x.mul_(x.sigmoid()) if inplace else x.mul(x.sigmoid())
