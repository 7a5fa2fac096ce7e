# at: attn = (q @ k.transpose(-2, -1))
import torch
import torch.nn as nn


class WindowAttention(nn.Module):
    def __init__(self, heads, n, dim):
        super().__init__()
        self.scale = dim ** -0.5
        self.table = nn.Parameter(torch.randn(heads, n, n))
        self.attn_drop = nn.Dropout(0.0)
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, q, k, v):
        q = q * self.scale
        attn = (q @ k.transpose(-2, -1))

        relative_position_bias = self.table.contiguous()  # nH, Wh*Ww, Wh*Ww
        attn = attn + relative_position_bias.unsqueeze(0)
        attn = self.softmax(attn)
        attn = self.attn_drop(attn)
        x = (attn @ v).transpose(1, 2)
        return x


def run():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 3, 4, 8)
    return WindowAttention(3, 4, 8)(q, k, v)
