# at: var = torch.var(x, dim = 1, unbiased = False, keepdim = True)
# fix: unsafe
import torch
from torch import nn


class ChanLayerNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.g = nn.Parameter(torch.ones(1, dim, 1, 1))
        self.b = nn.Parameter(torch.zeros(1, dim, 1, 1))

    def forward(self, x):
        return nn.functional.layer_norm(x.permute(0, 2, 3, 1), x.shape[1:2], self.g.flatten(), self.b.flatten(), eps=self.eps).permute(0, 3, 1, 2)
