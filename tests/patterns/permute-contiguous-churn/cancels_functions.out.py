# at: x = torch.permute(x, (0, 2, 3, 1)).contiguous()
import torch


def block(x, scale):
    x = x.contiguous()
    return x * scale


def run():
    return block(torch.arange(24.0).view(1, 2, 3, 4), 2.0)
