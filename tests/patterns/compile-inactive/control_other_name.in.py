# at: out = net(images)
import torch
from torch import nn

net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GELU())
compiled = torch.compile(net)
out = net(images)
