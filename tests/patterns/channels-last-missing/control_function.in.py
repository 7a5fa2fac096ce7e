# at: y = F.conv2d(x, weight)
# confirmed: no
import torch.nn.functional as F


def blur(x, weight):
    y = F.conv2d(x, weight)
    return y
