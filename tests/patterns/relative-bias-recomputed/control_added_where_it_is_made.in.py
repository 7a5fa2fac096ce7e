# at: sim = sim + self.rel_pos_bias(self.rel_pos_indices).permute(2, 0, 1)
import torch
import torch.nn as nn


class Attention(nn.Module):
    """The sum depends on the input: keeping it would be wrong."""

    def __init__(self):
        super().__init__()
        self.rel_pos_bias = nn.Embedding(9, 2)
        self.register_buffer("rel_pos_indices", torch.zeros(4, 4, dtype=torch.long))

    def forward(self, q, k, v):
        sim = q @ k.transpose(-2, -1)
        sim = sim + self.rel_pos_bias(self.rel_pos_indices).permute(2, 0, 1)
        return sim.softmax(dim=-1) @ v
