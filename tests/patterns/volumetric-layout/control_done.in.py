# at: y = net(clip
# confirmed: no
import torch
from torch import nn

net = nn.Sequential(nn.Conv3d(3, 8, 3), nn.ReLU()).cuda().to(memory_format=torch.channels_last_3d)


def embed(clip):
    y = net(clip.contiguous(memory_format=torch.channels_last_3d))
    return y
