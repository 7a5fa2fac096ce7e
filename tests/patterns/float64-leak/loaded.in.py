# at: x * weights
# line: weights = torch.from_numpy
# fix: unsafe
import numpy as np
import torch

weights = torch.from_numpy(np.load("weights.npy"))


def weigh(x):
    return (x * weights).sum()
