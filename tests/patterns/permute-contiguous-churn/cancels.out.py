# at: x = x.permute(0, 3, 1, 2).contiguous()  # and back
# line: x = x.permute(0, 2, 3, 1).contiguous()
import torch


def block(x, scale):
    scale = scale + 1
    x = x.contiguous()  # and back
    return x * scale


def run():
    return block(torch.arange(24.0).view(1, 2, 3, 4), 2.0)
