# at: scale = x.abs().max().item()
import torch


@torch.compile
def forward(x):
    scale = x.abs().max().item()
    return x / scale
