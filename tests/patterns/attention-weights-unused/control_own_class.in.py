# at: y, _ = self.attn(x, x, x)
# confirmed: no
import torch
import torch.nn as nn


class MultiheadAttention(nn.Module):
    """Not torch's: it knows no need_weights."""

    def forward(self, q, k, v):
        weights = torch.softmax(q @ k.transpose(-2, -1), dim=-1)
        return weights @ v, weights


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = MultiheadAttention()

    def forward(self, x):
        y, _ = self.attn(x, x, x)
        return x + y
