# at: return self.rel_pos_table[self.rel_pos_index]
# fix: unsafe
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Attention(nn.Module):
    def __init__(self, tokens=6, heads=2):
        super().__init__()
        self.rel_pos_table = nn.Parameter(torch.randn(2 * tokens - 1, heads))
        steps = torch.arange(tokens)
        self.register_buffer("rel_pos_index", steps[:, None] - steps[None, :] + tokens - 1, persistent=False)

    def relative_bias(self):
        """(1, heads, tokens, tokens)"""
        return self.rel_pos_table[self.rel_pos_index].permute(2, 0, 1).unsqueeze(0).contiguous()

    def forward(self, q, k, v):
        return scaled_dot_product_attention(q, k, v, attn_mask=self.relative_bias())


def run():
    torch.manual_seed(0)
    module, q = Attention().eval(), torch.randn(3, 2, 6, 4)
    with torch.no_grad():
        return module(q, q, q), module(q, q, q)
