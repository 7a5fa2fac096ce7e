# at: q = self.to_q(x)
# confirmed: no
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    """Keys and values see the input with its positions, queries do not."""

    def __init__(self, dim):
        super().__init__()
        self.to_q = nn.Linear(dim, dim)
        self.to_k = nn.Linear(dim, dim)
        self.to_v = nn.Linear(dim, dim)

    def forward(self, x, positions):
        q = self.to_q(x)
        x = x + positions
        k = self.to_k(x)
        v = self.to_v(x)
        return F.scaled_dot_product_attention(q, k, v)
