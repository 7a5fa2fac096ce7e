# at: x = net(x)
# line: net = Net().cuda().eval()
# fix: unsafe
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(64, 64)

    def forward(self, x):
        return self.inner(x).relu()


def generate(x):
    net = Net().cuda().eval()  # fp32 parameters
    net.load_state_dict(torch.load("weights.pt"))
    with torch.inference_mode(), torch.autocast("cuda", torch.bfloat16):
        for _ in range(10):
            x = net(x)
    return x
