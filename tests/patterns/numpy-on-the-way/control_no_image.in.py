# at: torch.from_numpy(
# confirmed: no
import numpy as np
import torch


def anchors(grid, stride):
    centres = (np.arange(grid) + 0.5) * stride
    return torch.from_numpy(centres)
