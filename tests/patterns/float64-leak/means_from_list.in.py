# at: x - mean
# line: mean = torch.tensor
from statistics import fmean

import numpy as np
import torch

pixels = np.arange(12).reshape(4, 3)
mean = torch.tensor([np.mean(pixels[:, c]) for c in range(3)])


def normalize(x):
    x = x - mean
    return x / 2


def run():
    return normalize(torch.ones(2, 3)).float(), fmean([1.0])
