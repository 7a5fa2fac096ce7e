# at: x = self.blocks(x)
# caller: y = net(x)
# line: net = Net().cuda()
# fix: unsafe
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*[nn.Linear(8, 8) for _ in range(50)])

    def forward(self, x):
        x = self.blocks(x)
        return x


net = Net().cuda()  # small
net.compile(mode="reduce-overhead")
net.load_state_dict(torch.load("net.pt"))
with torch.no_grad():
    for x in torch.randn(100, 1, 8).cuda():
        y = net(x)
