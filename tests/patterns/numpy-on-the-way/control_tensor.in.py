# at: n = torch.tensor(n
# confirmed: no
import numpy as np
import torch


def probability(n, high=1.0, decay=0.001):
    n = torch.tensor(n, dtype=torch.float32)
    return high * torch.exp(-decay * n) + 0.0 * np.pi
