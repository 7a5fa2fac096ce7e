# at: weight_map[target]
# confirmed: no
import numpy as np
import torch

counts = np.bincount([0, 1, 1, 2])
class_weights = (counts.sum() / (3 * counts)).astype(np.float32)
weight_map = torch.from_numpy(class_weights)


def loss(logp, target):
    w = weight_map[target].unsqueeze(1)
    return -(w * logp).mean()
