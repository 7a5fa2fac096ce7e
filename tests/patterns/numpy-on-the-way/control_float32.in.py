# at: torch.from_numpy(x)
# confirmed: no
import numpy as np
import torch

MEAN = np.array([0.5, 0.5, 0.5], dtype=np.float32)


def encode(image):
    x = image.astype(np.float32) / 255.0 - MEAN
    return torch.from_numpy(x)
