# at: dim_t = torch.arange(self.feats, dtype=torch.float32, device=x.device)
# line: dim_t = torch.arange(
# fix: unsafe
import torch
from torch import nn


class PositionEmbeddingSine(nn.Module):
    def __init__(self, feats=64, temperature=10000):
        super().__init__()
        self.feats = feats
        self.temperature = temperature
        dim_t = torch.arange(self.feats, dtype=torch.float32)
        dim_t = self.temperature ** (2 * (dim_t // 2) / self.feats)
        self.register_buffer("dim_t", dim_t, persistent=False)

    def forward(self, x, mask):
        y_embed = (~mask).cumsum(1, dtype=torch.float32)
        dim_t = self.dim_t

        pos_y = y_embed[:, :, :, None] / dim_t
        return torch.stack((pos_y[..., 0::2].sin(), pos_y[..., 1::2].cos()), dim=4).flatten(3)
