# at: logits = net(images)
# confirmed: no
from torch import nn


def train(loader):
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)).cuda()
    for images in loader:
        logits = net(images)
        logits.mean().backward()
