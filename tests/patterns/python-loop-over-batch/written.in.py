# at: out[b] =
# line: for b in range(n):
# fix: unsafe
import torch


def whiten(x):
    n = x.size(0)
    out = torch.empty_like(x)
    for b in range(n):
        out[b] = (x[b] - x[b].mean()) / x[b].std()
    return out
