# at: x * scale
# confirmed: no
import numpy as np
import torch

scale = torch.from_numpy(np.linspace(0, 1, 8))  # float64: the sum below cancels


def total(x):
    return (x * scale).sum()
