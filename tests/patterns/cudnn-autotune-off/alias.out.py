# at: y = net(x)
# line: import torch.backends.cudnn as cudnn
# device: cuda 8.0
"""Serves one model."""
from torch.nn import Conv2d
import torch
import torch.backends.cudnn as cudnn

cudnn.benchmark = True

net = Conv2d(3, 8, 3)
print(cudnn.is_available())


def serve(x):
    y = net(x)
    return y


def run():
    for p in net.parameters():
        torch.nn.init.constant_(p, 0.5)
    return serve(torch.ones(1, 3, 4, 4))
