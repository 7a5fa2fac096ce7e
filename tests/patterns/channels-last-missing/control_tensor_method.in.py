# at: pred = outs.argmax(1)
# confirmed: no
import torch
from torch import nn

net = nn.Conv2d(3, 3, 1)


def metric(x):
    outs = x * 2
    pred = outs.argmax(1)
    return pred
