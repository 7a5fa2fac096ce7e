# at: cdf = 0.5 * (1.0 + torch.tanh(_SQRT_2_OVER_PI * (x + 0.044715 * torch.pow(x, 3))))
import math

import torch
import torch.nn.functional as F

_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)


def gelu(x):
    cdf = 0.5 * (1.0 + torch.tanh(_SQRT_2_OVER_PI * (x + 0.044715 * torch.pow(x, 3))))
    return x * cdf


def run():
    torch.manual_seed(0)
    x = torch.randn(4, 9, requires_grad=True)
    y = gelu(x)
    y.sum().backward()
    return y, x.grad, F.relu(y)
