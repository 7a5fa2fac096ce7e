# at: return F.scaled_dot_product_attention(q, k, v, attn_mask=self.band)
import torch
import torch.nn as nn
import torch.nn.functional as F


class LocalAttention(nn.Module):
    def __init__(self, tokens=1024, window=16):
        super().__init__()
        at = torch.arange(tokens)
        distance = (at[:, None] - at[None, :]).abs()
        self.register_buffer("band", distance <= window)

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self.band)
