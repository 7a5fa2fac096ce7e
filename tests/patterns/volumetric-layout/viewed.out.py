# at: y = net(clip)
# line: net = Net().cuda()
# fix: unsafe
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(3, 8, 3)

    def forward(self, x):
        x = self.conv(x)
        return x.view(x.shape[0], 8, -1).mean(2)


net = Net().cuda().to(memory_format=torch.channels_last_3d)


def embed(clip):
    y = net(clip.contiguous(memory_format=torch.channels_last_3d))
    return y
