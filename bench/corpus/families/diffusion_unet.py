"""Latent diffusion: a U-Net that is told the time and attends to a text's states."""

from __future__ import annotations

import math
import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..blocks import Attention, CrossAttention, Mlp
from ..family import Family
from ..job import Job
from ..making import choose_batch_size, make_job
from ..marks import to_host

TEXT = (16, 96)
"""Tokens and width of a text's states."""
TIMES = 1024


class ResBlock(nn.Module):
    def __init__(self, channels: int, emb_channels: int, out_channels: int) -> None:
        super().__init__()
        self.in_layers = nn.Sequential(
            nn.GroupNorm(8, channels), nn.SiLU(), nn.Conv2d(channels, out_channels, 3, padding=1)
        )
        self.emb_layers = nn.Sequential(nn.SiLU(), nn.Linear(emb_channels, out_channels))
        self.out_layers = nn.Sequential(
            nn.GroupNorm(8, out_channels), nn.SiLU(), nn.Conv2d(out_channels, out_channels, 3, padding=1)
        )
        self.skip = nn.Identity() if channels == out_channels else nn.Conv2d(channels, out_channels, 1)

    def forward(self, x: Tensor, emb: Tensor) -> Tensor:
        h = self.in_layers(x) + self.emb_layers(emb)[:, :, None, None]
        return self.skip(x) + self.out_layers(h)


class SpatialTransformer(nn.Module):
    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(8, channels)
        self.norm1, self.attn1 = nn.LayerNorm(channels), Attention(channels, heads, qkv_bias=False)
        self.norm2, self.attn2 = nn.LayerNorm(channels), CrossAttention(channels, heads, memory_dim=TEXT[1])
        self.norm3, self.ff = nn.LayerNorm(channels), Mlp(channels, 4 * channels)

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        h = self.norm(x).flatten(2).transpose(1, 2)
        h = h + self.attn1(self.norm1(h))
        h = h + self.attn2(self.norm2(h), context)
        h = h + self.ff(self.norm3(h))
        return x + h.transpose(1, 2).unflatten(2, x.shape[-2:])


class Level(nn.Module):
    """A residual block and, where wanted, attention."""

    def __init__(self, channels: int, emb: int, out: int, heads: int) -> None:
        super().__init__()
        self.res = ResBlock(channels, emb, out)
        self.attn = SpatialTransformer(out, heads) if heads else None

    def forward(self, x: Tensor, emb: Tensor, context: Tensor) -> Tensor:
        x = self.res(x, emb)
        return x if self.attn is None else self.attn(x, context)


class DiffusionUNet(nn.Module):
    frequencies: Tensor
    alphas: Tensor

    def __init__(self, channels: int, mult: tuple[int, ...], attention_from: int) -> None:
        super().__init__()
        emb = 4 * channels
        widths = [channels * m for m in mult]
        heads = [width // 32 if level >= attention_from else 0 for level, width in enumerate(widths)]
        self.register_buffer("frequencies", torch.exp(-math.log(10000) * torch.arange(channels // 2) / (channels // 2)))
        self.register_buffer("alphas", torch.cos(torch.linspace(0, math.pi / 2 - 0.01, TIMES)).square())
        self.time_embed = nn.Sequential(nn.Linear(channels, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.conv_in = nn.Conv2d(4, channels, 3, padding=1)
        inputs = [channels, *widths[:-1]]
        self.downs = nn.ModuleList(Level(a, emb, b, h) for a, b, h in zip(inputs, widths, heads, strict=True))
        self.downsamples = nn.ModuleList(nn.Conv2d(width, width, 3, 2, 1) for width in widths[:-1])
        self.mid = Level(widths[-1], emb, widths[-1], heads[-1])
        self.ups = nn.ModuleList(
            Level(2 * b, emb, a, h) for a, b, h in reversed(list(zip(inputs, widths, heads, strict=True)))
        )
        self.upsamples = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for width in reversed(widths[:-1]))
        self.out = nn.Sequential(nn.GroupNorm(8, channels), nn.SiLU(), nn.Conv2d(channels, 4, 3, padding=1))

    def forward(self, latent: Tensor, time: Tensor, context: Tensor, noise: Tensor | None = None):
        """Training: the predicted noise. Inference: the latent a step of DDIM earlier."""
        alpha = self.alphas[time][:, None, None, None]
        if noise is None:
            predicted = self.denoise(latent, time, context)
            earlier = self.alphas[(time - TIMES // 32).clamp(min=0)][:, None, None, None]
            clean = (latent - (1 - alpha).sqrt() * predicted) / alpha.sqrt()
            return earlier.sqrt() * clean + (1 - earlier).sqrt() * predicted
        return self.denoise(alpha.sqrt() * latent + (1 - alpha).sqrt() * noise, time, context)

    def denoise(self, x: Tensor, time: Tensor, context: Tensor) -> Tensor:
        phase = time[:, None] * self.frequencies
        emb = self.time_embed(torch.cat((phase.cos(), phase.sin()), dim=1))
        x, skips = self.conv_in(x), []
        for level, down in enumerate(self.downs):
            x = down(x, emb, context)
            skips.append(x)
            if level < len(self.downsamples):
                x = self.downsamples[level](x)
        x = self.mid(x, emb, context)
        for level, up in enumerate(self.ups):
            x = up(torch.cat((x, skips.pop()), dim=1), emb, context)
            if level < len(self.upsamples):
                x = self.upsamples[level](F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.out(x)


def make(rng: random.Random, training: bool) -> Job:
    """Two or three levels from 32 to 96 channels on, latents of 16 or 24 pixels."""
    channels, mult = rng.choice([(32, (1, 2, 4)), (64, (1, 2)), (32, (1, 2, 3)), (96, (1, 2)), (48, (2, 4))])
    side = rng.choice([16, 24]) if channels < 96 else 16
    noise = (lambda draw: (draw.noise(4, side, side),)) if training else lambda draw: ()

    return make_job(
        "diffusion_unet",
        DiffusionUNet(channels, mult, attention_from=rng.choice([0, 1])),
        training,
        choose_batch_size(rng, at_most=7),
        inputs=lambda draw: (draw.noise(4, side, side), draw.label(TIMES), draw.noise(*TEXT), *noise(draw)),
        targets=lambda draw: (draw.noise(4, side, side),),
        loss=lambda predicted, targets: F.mse_loss(predicted, targets[0]),
        postprocess=to_host,
    )


FAMILY = Family("diffusion_unet", "generation", make)
