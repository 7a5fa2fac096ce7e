# slug: host-scalar-read
# verdict: control
# silent: yes
# note: .item() in a constructor, on a tensor of the host: runs once, and waits for nothing
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, rate):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, dim)
        self.drop = nn.Dropout(rate)

    def forward(self, x):
        return x + self.drop(self.fc(self.norm(x)))


class Encoder(nn.Module):
    def __init__(self, dim=64, depth=6, drop=0.1):
        super().__init__()
        rates = [v.item() for v in torch.linspace(0, drop, depth)]
        self.blocks = nn.Sequential(*(Block(dim, rate) for rate in rates))

    def forward(self, x):
        return self.blocks(x)


def main(profiler):
    for _ in range(7):
        model = Encoder()  # a sweep makes a new model for every setting
        model(torch.randn(4, 16, 64)).sum().backward()
        profiler.step()
