# at: loss = net(batch).mean()
# line: with cudnn.flags(enabled=False, deterministic=True):
# device: cuda 8.6
import torch
from torch.backends import cudnn

net = torch.nn.Conv3d(1, 2, 3)


def step(batch):
    with cudnn.flags(enabled=True, deterministic=True):
        loss = net(batch).mean()
        loss.backward()
    return net.weight.grad


def run():
    with torch.no_grad():
        net.weight.fill_(0.5)
    net.zero_grad()
    return step(torch.linspace(0, 1, 125).view(1, 1, 5, 5, 5))
