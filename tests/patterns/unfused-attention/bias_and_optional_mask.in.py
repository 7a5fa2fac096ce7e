# at: attn = attn + mask
# line: attn = torch.matmul(q, k.transpose(-1, -2))
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, dim, heads, drop):
        super().__init__()
        self.head_dim = dim // heads
        self.p = drop

    def forward(self, q, k, v, mask=None):
        attn = torch.matmul(q, k.transpose(-1, -2))
        attn = attn / (self.head_dim ** 0.5)
        if mask is not None:
            attn = attn + mask

        attn = F.softmax(attn, dim=-1, dtype=torch.float32).to(q.dtype)
        attn = F.dropout(attn, p=self.p, training=self.training)
        out = torch.matmul(attn, v)
        return out, None


def run():
    torch.manual_seed(0)
    m = Attention(8, 2, 0.2).eval()
    q, k, v = torch.randn(3, 2, 2, 5, 4)
    return m(q, k, v)[0], m(q, k, v, torch.randn(1, 1, 5, 5))[0]
