# slug: host-scalar-read
# verdict: fault
# at: assert int((level_hw[:, 0] * level_hw[:, 1]).sum())
# fix: none
# note: DETR-family detection, training: an assert reads a device value once per decoder layer
import torch
from torch import nn


class DeformableLayer(nn.Module):
    def __init__(self, dim=256):
        super().__init__()
        self.value_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)

    def core(self, tokens, level_hw):
        return self.out_proj(torch.relu(self.value_proj(tokens)))

    def deform_attn(self, tokens, level_hw):                 # level_hw: [L, 2] int64 on cuda
        assert int((level_hw[:, 0] * level_hw[:, 1]).sum()) == tokens.shape[1]
        return self.core(tokens, level_hw)

    def forward(self, tokens, level_hw):
        return tokens + self.deform_attn(tokens, level_hw)


class Decoder(nn.Module):
    def __init__(self, depth=3, dim=256):
        super().__init__()
        self.layers = nn.ModuleList(DeformableLayer(dim) for _ in range(depth))

    def forward(self, tokens, level_hw):
        for layer in self.layers:
            tokens = layer(tokens, level_hw)
        return tokens


def train_step(decoder, optimizer, tokens, level_hw):
    loss = decoder(tokens, level_hw).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss
