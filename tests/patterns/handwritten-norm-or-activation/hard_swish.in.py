# at: inner = F.relu6(x + 3.0).div_(6.0)
import torch
import torch.nn.functional as F


def hard_swish(x):
    inner = F.relu6(x + 3.0).div_(6.0)
    return x.mul(inner)


def run():
    torch.manual_seed(0)
    x = torch.randn(4, 9, requires_grad=True)
    with torch.no_grad():
        return hard_swish(3 * x)
