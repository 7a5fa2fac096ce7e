# at: if torch.isnan(loss):
import torch


def step(loss):
    if torch.isnan(loss):
        raise ValueError("nan")
    return loss
