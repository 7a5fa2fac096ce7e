# at: y = F.scaled_dot_product_attention(self.q(x), self.k(x), self.v(x), attn_mask=bias)
# evidence: reason three dimensions
# evidence: mask 16x16
import torch
import torch.nn.functional as F
from torch import nn


class SpatialAttention(nn.Module):
    """One head over the positions of a feature map."""

    def __init__(self, dim=16):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, maps, bias):
        x = maps.flatten(2).transpose(1, 2)
        y = F.scaled_dot_product_attention(self.q(x), self.k(x), self.v(x), attn_mask=bias)
        return y.transpose(1, 2).view_as(maps)


def run():
    torch.manual_seed(0)
    maps = torch.randn(2, 16, 4, 4, requires_grad=True)
    module = SpatialAttention()
    y = module(maps, torch.randn(16, 16))
    y.square().sum().backward()
    return y, maps.grad
