# at: torch.from_numpy(
# line: x = (image / 255 - MEAN) / STD
# fix: unsafe
import numpy as np
import torch

MEAN, STD = np.array([0.5]), np.array([0.25])


def encode(image):
    x = (np.float32(image) / 255 - np.float32(MEAN)) / np.float32(STD)
    return torch.from_numpy(x.transpose(2, 0, 1))
