# at: return self.block(x)
# line: super().__init__(nn.Conv2d(a, b, 3), nn.BatchNorm2d(b), nn.ReLU())
# fix: unsafe
import torch
from torch import nn


class ConvBNReLU(nn.Sequential):
    def __init__(self, a, b):
        super().__init__(nn.Conv2d(a, b, 3), nn.BatchNorm2d(b), nn.ReLU())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = ConvBNReLU(3, 8)

    def forward(self, x):
        return self.block(x)


def resume(path):
    net = Net()
    net.load_state_dict(torch.load(path))
    return net
