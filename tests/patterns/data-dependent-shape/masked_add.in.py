# at: emb[kind == 0] += self.background.weight
import torch
from torch import nn


class Prompts(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.background = nn.Embedding(1, dim)
        self.other = nn.Parameter(torch.ones(dim))

    def forward(self, emb, kind):
        emb[kind == 0] += self.background.weight
        return emb + self.other


def run():
    torch.manual_seed(0)
    module = Prompts(4)
    source = torch.randn(2, 3, 4, requires_grad=True)
    out = module(source * 1, torch.tensor([[0, 1, 0], [1, 1, 0]]))
    out.square().sum().backward()
    return out.detach(), source.grad, module.background.weight.grad
