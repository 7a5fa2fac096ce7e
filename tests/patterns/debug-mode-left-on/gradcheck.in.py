# at: assert gradcheck(
import torch
from torch.autograd import gradcheck


def step(function, x):
    assert gradcheck(function, (x.double(),))
    return function(x)


def run():
    torch.manual_seed(0)
    x = torch.rand(3, requires_grad=True)
    return step(torch.sin, x)
