# at: out[b] =
# line: for b in range(n):
# fix: unsafe
import torch


def whiten(x):
    n = x.size(0)
    out = torch.empty_like(x)
    out[:] = torch.vmap(lambda x_b: (x_b - x_b.mean()) / x_b.std())(x)
    return out
