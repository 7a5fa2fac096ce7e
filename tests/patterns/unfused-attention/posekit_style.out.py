# at: weights = torch.softmax(logits, dim=-1)
# line: logits = torch.matmul(q, k.transpose(-1, -2)) * self.scale
# device: cpu
import torch
from torch import nn


class Mixer(nn.Module):
    """Multi-head self attention."""

    def __init__(self, dim, heads):
        super().__init__()
        self.h = heads
        self.scale = (dim // heads) ** -0.5
        self.to_q, self.to_k, self.to_v = (nn.Linear(dim, dim) for _ in range(3))

    def heads_first(self, t):
        b, n, c = t.shape
        return t.view(b, n, self.h, c // self.h).transpose(1, 2)

    def forward(self, x):
        q = self.heads_first(self.to_q(x))
        k = self.heads_first(self.to_k(x))
        v = self.heads_first(self.to_v(x))
        # (batch, heads, tokens, tokens)
        y = nn.functional.scaled_dot_product_attention(q, k, v, scale=self.scale)
        return y.transpose(1, 2).flatten(2)


def run():
    torch.manual_seed(0)
    return Mixer(16, 4)(torch.randn(2, 5, 16))
