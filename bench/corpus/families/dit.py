"""DiT: a diffusion transformer over latent patches, with norms that the time and the class modulate."""

from __future__ import annotations

import math
import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..family import Family
from ..job import Job
from ..making import choose_batch_size, make_job
from ..marks import to_host

TIMES = 1024


class SelfAttention(nn.Module):
    def __init__(self, hidden_size: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(hidden_size, hidden_size * 3)
        self.proj = nn.Linear(hidden_size, hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        qkv = self.qkv(x).view(batch, tokens, 3, self.num_heads, width // self.num_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        x = F.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).reshape(batch, tokens, width))


class DiTBlock(nn.Module):
    """adaLN-Zero."""

    def __init__(self, hidden_size: int, num_heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(hidden_size, elementwise_affine=False, eps=1e-6)
        self.attn = SelfAttention(hidden_size, num_heads)
        self.norm2 = nn.LayerNorm(hidden_size, elementwise_affine=False, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(hidden_size, 4 * hidden_size),
            nn.GELU(approximate="tanh"),
            nn.Linear(4 * hidden_size, hidden_size),
        )
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(hidden_size, 6 * hidden_size))

    def forward(self, x: Tensor, c: Tensor) -> Tensor:
        shift1, scale1, gate1, shift2, scale2, gate2 = self.adaLN_modulation(c).unsqueeze(1).chunk(6, dim=-1)
        x = x + gate1 * self.attn(modulate(self.norm1(x), shift1, scale1))
        return x + gate2 * self.mlp(modulate(self.norm2(x), shift2, scale2))


def modulate(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    return torch.addcmul(shift, x, 1 + scale)


class DiT(nn.Module):
    frequencies: Tensor
    alphas: Tensor

    def __init__(self, size: int, patch: int, hidden_size: int, depth: int, num_heads: int, num_classes: int) -> None:
        super().__init__()
        self.patch = patch
        self.x_embedder = nn.Linear(4 * patch**2, hidden_size)
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, (size // patch) ** 2, hidden_size))
        self.t_embedder = nn.Sequential(nn.Linear(96, hidden_size), nn.SiLU(), nn.Linear(hidden_size, hidden_size))
        self.y_embedder = nn.Embedding(num_classes, hidden_size)
        self.blocks = nn.ModuleList(DiTBlock(hidden_size, num_heads) for _ in range(depth))
        self.final_norm = nn.LayerNorm(hidden_size, elementwise_affine=False, eps=1e-6)
        self.final_modulation = nn.Sequential(nn.SiLU(), nn.Linear(hidden_size, 2 * hidden_size))
        self.final_linear = nn.Linear(hidden_size, 4 * patch**2)
        self.register_buffer("frequencies", torch.exp(-math.log(10000) * torch.arange(48) / 48))
        self.register_buffer("alphas", torch.cos(torch.linspace(0, math.pi / 2 - 0.01, TIMES)).square())

    def forward(self, x: Tensor, t: Tensor, y: Tensor, noise: Tensor | None = None) -> Tensor:
        """Training: the predicted noise of the noised latent. Inference: the latent of the next smaller time."""
        alpha = self.alphas[t][:, None, None, None]
        if noise is not None:
            return self.denoise(alpha.sqrt() * x + (1 - alpha).sqrt() * noise, t, y)
        predicted = self.denoise(x, t, y)
        clean = ((x - (1 - alpha).sqrt() * predicted) / alpha.sqrt()).clamp(-4, 4)
        earlier = self.alphas[(t - TIMES // 32).clamp(min=0)][:, None, None, None]
        return earlier.sqrt() * clean + (1 - earlier).sqrt() * predicted

    def denoise(self, x: Tensor, t: Tensor, y: Tensor) -> Tensor:
        size = x.shape[-1] // self.patch
        phase = t[:, None] * self.frequencies
        c = self.t_embedder(torch.cat((phase.cos(), phase.sin()), dim=-1)) + self.y_embedder(y)
        x = self.x_embedder(F.pixel_unshuffle(x, self.patch).flatten(2).transpose(1, 2)) + self.pos_embed
        for block in self.blocks:
            x = block(x, c)
        shift, scale = self.final_modulation(c).unsqueeze(1).chunk(2, dim=-1)
        x = self.final_linear(modulate(self.final_norm(x), shift, scale))
        return F.pixel_shuffle(x.transpose(1, 2).unflatten(2, (size, size)), self.patch)


def make(rng: random.Random, training: bool) -> Job:
    """Four to eight blocks of width 128 to 256, latents of 16 or 24 pixels in patches of 2x2."""
    hidden_size, num_heads, depth = rng.choice([(128, 4, 8), (192, 6, 4), (192, 3, 6), (256, 4, 4)])
    size = rng.choice([16, 24]) if hidden_size < 256 else 16
    num_classes = rng.choice([48, 96, 128])

    def inputs(draw):
        latent, condition = draw.noise(4, size, size), (draw.label(TIMES), draw.label(num_classes))
        return (latent, *condition, draw.noise(4, size, size)) if training else (latent, *condition)

    return make_job(
        "dit",
        DiT(size, 2, hidden_size, depth, num_heads, num_classes),
        training,
        choose_batch_size(rng, at_most=7 if size == 24 else 11),
        inputs=inputs,
        targets=lambda draw: (draw.noise(4, size, size),),
        loss=lambda predicted, targets: F.mse_loss(predicted, targets[0]),
        postprocess=to_host,
        channels_last=False,
    )


FAMILY = Family("dit", "generation", make)
