# at: return torch.from_numpy(np.array(image))
# confirmed: no
import numpy as np
import torch


def dots(image, draw, points, radius=2):
    for point in points:
        left = point[0] - radius
        draw.ellipse([left, point[1], left + 4, point[1] + 4])
    return torch.from_numpy(np.array(image))
