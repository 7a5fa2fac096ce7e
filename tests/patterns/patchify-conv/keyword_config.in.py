# at: return self.norm(self.patch(pixels.float()).flatten(2).mT)
import torch
import torch.nn as nn
import torch.nn.functional as F


def make_patch(cfg):
    size = cfg.patch
    return nn.Conv2d(cfg.channels, cfg.width, size, stride=(size, size), padding=0, bias=False)


class Config:
    channels = 3
    width = 16
    patch = 4


class Stem(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.patch = nn.Conv2d(cfg.channels, cfg.width, cfg.patch, cfg.patch, padding="valid", bias=False)
        self.norm = nn.LayerNorm(cfg.width)

    def forward(self, pixels):
        kh = pixels.shape[-2]
        assert kh > 1
        return self.norm(self.patch(pixels.float()).flatten(2).mT)


def run():
    torch.manual_seed(0)
    stem = Stem(Config())
    pixels = torch.rand(2, 3, 16, 12)
    tokens = stem(pixels)
    F.mse_loss(tokens, torch.ones_like(tokens)).backward()
    return [tokens.detach(), *(p.grad for p in stem.parameters())]
