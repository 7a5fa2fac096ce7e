# at: return x.mul_(inner) if inplace else x.mul(inner)
# fix: unsafe
import torch.nn.functional as F


def hard_swish(x, inplace: bool = False):
    inner = F.relu6(x + 3.).div_(6.)
    return F.hardswish(x) if inplace else F.hardswish(x)
