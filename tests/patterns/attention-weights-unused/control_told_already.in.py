# at: y = self.attn(
# confirmed: no
import torch.nn as nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        y = self.attn(x, x, x, need_weights=False)[0]
        return x + y
