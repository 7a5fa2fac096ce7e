# at: pred.double()
# confirmed: no
import numpy as np
import torch

offsets = torch.from_numpy(np.zeros(4))


def area(pred):
    return (pred.double() + offsets).prod()
