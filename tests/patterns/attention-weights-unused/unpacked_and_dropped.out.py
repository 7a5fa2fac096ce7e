# at: tgt2, _ = attention(q, k, tgt
import torch
from torch import nn


class Decoder(nn.Module):
    """Detection decoder: queries attend to each other, then to the image."""

    def __init__(self, dim=16, layers=2):
        super().__init__()
        self.self_attns = nn.ModuleList(nn.MultiheadAttention(dim, 4) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(layers))

    def forward(self, tgt, pos, padding=None):
        for attention, norm in zip(self.self_attns, self.norms):
            q = k = tgt + pos
            tgt2, _ = attention(q, k, tgt, padding, need_weights=False)  # no weights here
            tgt = norm(tgt + tgt2)
        return tgt


def run():
    torch.manual_seed(0)
    decoder = Decoder()
    tgt = torch.randn(5, 2, 16, requires_grad=True)
    out = decoder(tgt, torch.randn(5, 2, 16))
    out.sum().backward()
    return out, tgt.grad, decoder.eval()(tgt, tgt)
