# at: y = net(x)
# confirmed: no
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.bn = nn.BatchNorm2d(8)

    def forward(self, x):
        raw = self.conv(x)
        return self.bn(raw) + raw


net = Net().eval()


def predict(x):
    with torch.no_grad():
        y = net(x)
    return y
