# at: net(x)
# confirmed: no
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x


def predict(x):
    net = Net().eval()
    net.to(torch.bfloat16)
    with torch.inference_mode(), torch.autocast("cuda", torch.bfloat16):
        return net(x)
