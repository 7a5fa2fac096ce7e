# at: var = x.var(-1, keepdim=True, unbiased=False)
# confirmed: no
import torch


def quick_gelu(x, var):
    var = x.var(-1, keepdim=True, unbiased=False)
    return x * torch.sigmoid(1.702 * x), var
