# at: q, k, v = self.to_qkv(x).chunk(3, -1)[0], self.to_qkv(x).chunk(3, -1)[1], self.to_qkv(x).chunk(3, -1)[2]
# fix: unsafe
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.to_qkv = nn.Linear(dim, dim * 3)

    def forward(self, x):
        q, k, v = self.to_qkv(x).chunk(3, -1)[0], self.to_qkv(x).chunk(3, -1)[1], self.to_qkv(x).chunk(3, -1)[2]
        q *= 0.25
        return F.scaled_dot_product_attention(q, k, v, scale=1.0)
