# at: loss = bce(disc(real), ones)
# line: gen, disc = Generator(), Critic()
# device: cpu
import torch
from torch import nn

bce = nn.BCEWithLogitsLoss()


class Generator(nn.Module):
    def forward(self, x):
        return x


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 1, 4)

    def forward(self, x):
        return self.conv(x).flatten(1)


def run():
    torch.manual_seed(0)
    gen, disc = Generator(), Critic()
    real, ones = torch.rand(2, 3, 4, 4) * 2 - 1, torch.ones(2, 1)
    loss = bce(disc(real), ones)
    return loss.detach()
