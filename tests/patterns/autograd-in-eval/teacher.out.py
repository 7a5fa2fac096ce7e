# at: t = teacher(x)
# fix: unsafe
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

    def forward(self, x):
        return self.body(x).relu()


def distil(student, teacher, x, weights):
    with torch.no_grad():
        t = teacher(x)
    s = student(x)
    loss = ((s - t) ** 2).mean()
    loss.backward()
    return loss
