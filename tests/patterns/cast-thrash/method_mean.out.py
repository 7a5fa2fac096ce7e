# at: scale = x.to(torch.float32)
import torch


def normalize(x):
    scale = x.mean(-1, keepdim=True, dtype=torch.float32).half()
    return x / scale


def run():
    torch.manual_seed(0)
    return normalize(torch.rand(4, 64).half() + 1)
