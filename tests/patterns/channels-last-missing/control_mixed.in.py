# at: y = model(x)
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.volume = nn.Conv3d(1, 8, 3)
        self.image = nn.Conv2d(8, 8, 3)

    def forward(self, x):
        return self.volume(self.image(x)[:, None])


model = Net()
x = torch.randn(2, 8, 32, 32)
y = model(x)
