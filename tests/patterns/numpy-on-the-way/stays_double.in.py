# at: torch.from_numpy(
# line: x = (image / 255 - MEAN) / STD
# fix: unsafe
import numpy as np
import torch

MEAN, STD = np.array([0.5]), np.array([0.25])


def encode(image):
    x = (image / 255 - MEAN) / STD
    return torch.from_numpy(x.transpose(2, 0, 1))
