# at: y = net(x)
import torch
from torch import nn

net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())


def predict(x):
    with torch.no_grad():
        y = net(x)
    return y
