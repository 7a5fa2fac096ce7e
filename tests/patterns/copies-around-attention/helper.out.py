# at: return t.unflatten(-1, (self.heads, -1)).transpose(1, 2).contiguous()
import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    heads = 2

    def __init__(self, dim=8):
        super().__init__()
        self.to_q = nn.Linear(dim, dim)
        self.to_kv = nn.Linear(dim, dim)

    def split_heads(self, t):
        return t.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, context):
        q = self.split_heads(self.to_q(x))
        kv = self.split_heads(self.to_kv(context))
        return F.scaled_dot_product_attention(q, kv, kv).transpose(1, 2).flatten(2)


def run():
    torch.manual_seed(0)
    return Attention()(torch.randn(2, 5, 8), torch.randn(2, 3, 8))
