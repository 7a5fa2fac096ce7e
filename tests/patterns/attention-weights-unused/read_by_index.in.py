# at: result = self.cross(
import torch
import torch.nn as nn


class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Parameter(torch.zeros(1, 4, 8))
        self.cross = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        result = self.cross(self.query.expand(len(x), -1, -1), x, x, None, True)
        return result[0].mean(dim=1)


def run():
    torch.manual_seed(0)
    return Pool()(torch.randn(2, 3, 8))
