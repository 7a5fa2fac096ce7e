# at: q = self.qkv(x)[..., : self.dim]
import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.dim = dim
        self.qkv = nn.Linear(dim, dim * 3)

    def forward(self, x):
        q = self.qkv(x)[..., : self.dim]
        k = self.qkv(x)[..., self.dim : 2 * self.dim]  # keys
        v = self.qkv(x)[..., 2 * self.dim :]
        return F.scaled_dot_product_attention(q, k, v)


def run():
    torch.manual_seed(0)
    attention = Attention()
    x = torch.randn(2, 5, 16, requires_grad=True)
    y = attention(x)
    y.square().sum().backward()
    return y, x.grad, attention.qkv.weight.grad
