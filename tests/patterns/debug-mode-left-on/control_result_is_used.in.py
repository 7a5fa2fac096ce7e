# at: ok = gradcheck(
from torch.autograd import gradcheck


def step(function, x):
    ok = gradcheck(function, (x,))
    return function(x) if ok else None
