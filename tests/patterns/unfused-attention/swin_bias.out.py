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

        relative_position_bias = self.table.contiguous()  # nH, Wh*Ww, Wh*Ww
        x = nn.functional.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=relative_position_bias.unsqueeze(0),
            dropout_p=self.attn_drop.p if self.attn_drop.training else 0.0,
            scale=1.0,
        ).transpose(1, 2)
        return x


def run():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 3, 4, 8)
    return WindowAttention(3, 4, 8)(q, k, v)
