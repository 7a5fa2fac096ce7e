# at: outputs = net(batch)
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval()
for batch in torch.ones(4, 2, 3, 8, 8):
    outputs = net(batch)
    print(outputs.argmax(1))


def run():
    return outputs.detach()
