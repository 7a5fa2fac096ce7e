# at: table = F.interpolate(pos, size=size, mode="bicubic")
import torch.nn as nn
import torch.nn.functional as F


class ViT(nn.Module):
    def forward(self, x, size):
        pos = self.pos_embed.reshape(1, 14, 14, -1).permute(0, 3, 1, 2)
        table = F.interpolate(pos, size=size, mode="bicubic")
        return x + table
