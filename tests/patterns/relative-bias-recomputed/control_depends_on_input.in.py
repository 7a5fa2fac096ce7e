# at: bias = self.bias_table[self.index[:n, :n]].permute(2, 0, 1)
# confirmed: no
import torch.nn as nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k):
        n = q.shape[-2]
        bias = self.bias_table[self.index[:n, :n]].permute(2, 0, 1)
        return q @ k.transpose(-2, -1) + bias
