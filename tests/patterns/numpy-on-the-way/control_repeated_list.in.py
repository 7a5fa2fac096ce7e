# at: return torch.tensor(
# confirmed: no
import numpy as np
import torch


def confidences(boxes):
    assert isinstance(boxes, np.ndarray)
    return torch.tensor([1.0] * len(boxes))
