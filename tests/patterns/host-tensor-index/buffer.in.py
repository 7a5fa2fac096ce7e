# at: self.table[self.index]
# line: self.index = torch.arange
import torch
from torch import nn


class RelativeBias(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.table = nn.Parameter(torch.randn(2 * size - 1, heads))
        self.index = torch.arange(size).view(-1, 1) - torch.arange(size) + size - 1

    def forward(self, scores):
        bias = self.table[self.index].permute(2, 0, 1)
        return scores + bias


def run():
    torch.manual_seed(0)
    module = RelativeBias(4, 2)
    return module(torch.zeros(1, 2, 4, 4)).detach(), float(len(module.state_dict()))
