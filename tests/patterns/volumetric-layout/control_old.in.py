# at: y = net(clip)
# device: cuda 7.0
# torch: 1.8
from torch import nn

net = nn.Sequential(nn.Conv3d(3, 8, 3), nn.ReLU()).cuda()


def embed(clip):
    y = net(clip)
    return y
