# at: x = F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias, dropout_p=self.drop)
# evidence: reason a mask of three dimensions
import torch
import torch.nn as nn
import torch.nn.functional as F


class Biased(nn.Module):
    drop = 0.0

    def __init__(self, heads=2, tokens=5):
        super().__init__()
        self.register_buffer("bias", torch.randn(heads, tokens, tokens))

    def forward(self, q, k, v):
        x = F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias.unsqueeze(0), dropout_p=self.drop)
        return x


def run():
    torch.manual_seed(0)
    return Biased()(*(torch.randn(3, 2, 5, 4) for _ in range(3)))
