# at: y = net(clip)
# line: net = nn.Sequential(nn.Conv3d(3, 6, (1, 3, 3)), nn.ReLU(), nn.Conv3d(6, 4, (3, 1, 1)))
# device: cpu
import torch
import torch.nn as nn

torch.manual_seed(1)
net = nn.Sequential(nn.Conv3d(3, 6, (1, 3, 3)), nn.ReLU(), nn.Conv3d(6, 4, (3, 1, 1))).to(memory_format=torch.channels_last_3d)


def embed(clip):
    y = net(clip.contiguous(memory_format=torch.channels_last_3d))
    return y.mean((2, 3, 4))


def run():
    return embed(torch.rand(2, 3, 4, 8, 8)).detach()
