# at: tokens = x.flatten(2).transpose(1, 2)
from torch import nn


class Head(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.fc = nn.Linear(c, 10)

    def forward(self, x):
        tokens = x.flatten(2).transpose(1, 2)
        return self.fc(tokens)
