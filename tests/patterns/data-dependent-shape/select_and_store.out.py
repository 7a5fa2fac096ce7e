# at: x[mask] = y[mask]
import torch


def limit(x):
    y = x.clamp(max=1.0).sqrt()
    mask = ~torch.isnan(y) & (x > 0.5)
    x.copy_(torch.where(mask, y, x))
    return x


def run():
    return limit(torch.tensor([[-1.0, 0.2], [0.7, 3.0]]))
