# at: torch.from_numpy(
# fix: unsafe
import numpy as np
import torch


def encode(image):
    return torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1).float()
