# at: pred - target
# line: torch.as_tensor(self.scale)
import numpy as np
import torch
from torch import nn


class ScaledLoss(nn.Module):
    def __init__(self, stds):
        super().__init__()
        self.scale = np.array(stds) / 2
        self.register_buffer("weight", torch.ones(3))
        self.inverse = 1.0 / torch.as_tensor(self.scale)

    def forward(self, pred, target):
        return ((pred - target) * self.inverse * self.weight).square().mean()


def run():
    torch.manual_seed(0)
    pred, target = torch.randn(5, 3, requires_grad=True), torch.randn(5, 3)
    loss = ScaledLoss([0.1, 0.2, 0.3])(pred, target)
    loss.backward()
    return loss.detach().float(), pred.grad
