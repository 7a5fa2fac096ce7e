# at: points @ basis
# line: basis = torch.from_numpy
# fix: unsafe
import numpy as np
import torch

basis = torch.from_numpy(np.linspace(0, 1, 9).reshape(3, 3)).float()


def project(points):
    return points @ basis
