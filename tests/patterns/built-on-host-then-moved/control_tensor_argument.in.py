# at: grid = torch.linspace(0, 1, 5).to(x)
import torch


def sample(x):
    grid = torch.linspace(0, 1, 5).to(x)
    return grid
