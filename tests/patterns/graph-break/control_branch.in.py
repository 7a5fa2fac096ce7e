# at: if x.sum() > 0:
import torch


@torch.compile
def forward(x):
    if x.sum() > 0:
        return x
    return -x
