# at: y = net(x)
# confirmed: no
import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).eval()
net = nn.Sequential(fuse_conv_bn_eval(net[0], net[1]), net[2])


def predict(x):
    with torch.no_grad():
        y = net(x)
    return y
