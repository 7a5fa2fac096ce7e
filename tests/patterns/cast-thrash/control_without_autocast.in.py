# at: net(x)
# confirmed: no
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x


def predict(x):
    net = Net().eval()
    with torch.inference_mode():
        return net(x)
