# at: attn = self.attend(dots)
# line: dots = einsum('b h i d, b h j d -> b h i j', q, k) * self.scale
import torch
from torch import einsum, nn


class Attention(nn.Module):
    def __init__(self, dim_head = 64):
        super().__init__()
        self.scale = dim_head ** -0.5
        self.attend = nn.Softmax(dim = -1)
        self.dropout = nn.Dropout(0.1)

    def forward(self, q, k, v):
        dots = einsum('b h i d, b h j d -> b h i j', q, k) * self.scale

        attn = self.attend(dots)
        attn = self.dropout(attn)

        return einsum('b h i j, b h j d -> b h i d', attn, v)


def run():
    torch.manual_seed(0)
    return Attention(4).eval()(*torch.randn(3, 2, 3, 5, 4))
