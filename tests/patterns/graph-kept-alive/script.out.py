# at: outputs.append(net(frame))
import torch
from torch import nn

net = nn.Linear(4, 2)
nn.init.constant_(net.weight, 0.5)
nn.init.constant_(net.bias, 0.25)
frames = torch.ones(3, 4)
outputs = []
for frame in frames:
    outputs.append(net(frame).detach())


def run():
    return torch.stack([one.detach() for one in outputs])
