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
        kh_, kw_ = self.patch.kernel_size
        patches = pixels.float().unfold(2, kh_, kh_).unfold(3, kw_, kw_).permute(0, 2, 3, 1, 4, 5).flatten(3)
        return self.norm(F.linear(patches, self.patch.weight.flatten(1), self.patch.bias).permute(0, 3, 1, 2).flatten(2).mT)


def run():
    torch.manual_seed(0)
    stem = Stem(Config())
    pixels = torch.rand(2, 3, 16, 12)
    tokens = stem(pixels)
    F.mse_loss(tokens, torch.ones_like(tokens)).backward()
    return [tokens.detach(), *(p.grad for p in stem.parameters())]
