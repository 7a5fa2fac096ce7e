"""Vision transformer with a class token."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..blocks import PatchEmbed, TransformerBlock
from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job, top_classes


class VisionTransformer(nn.Module):
    def __init__(self, side: int, patch: int, dim: int, depth: int, heads: int, classes: int) -> None:
        super().__init__()
        self.normalize = Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
        self.patch_embed = PatchEmbed(3, dim, patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, (side // patch) ** 2 + 1, dim))
        self.blocks = nn.Sequential(*(TransformerBlock(dim, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, image: Tensor) -> Tensor:
        patches = self.patch_embed(self.normalize(image))
        tokens = torch.cat((self.cls_token.expand(len(patches), -1, -1), patches), 1) + self.pos_embed
        return self.head(self.norm(self.blocks(tokens)[:, 0]))


def make(rng: random.Random, training: bool) -> Job:
    """Four to eight blocks of width 128 to 256, 36 to 64 patches."""
    dim, heads, depth = rng.choice([(128, 4, 8), (192, 3, 6), (192, 6, 4), (256, 4, 4)])
    side, patch = rng.choice([(96, 16), (128, 16), (64, 8)])
    classes = rng.choice([64, 96, 128])
    return make_job(
        "vit",
        VisionTransformer(side, patch, dim, depth, heads, classes),
        training,
        choose_batch_size(rng),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (draw.label(classes),),
        loss=lambda logits, targets: F.cross_entropy(logits, targets[0], label_smoothing=0.1),
        postprocess=top_classes,
    )


FAMILY = Family("vit", "classification", make)
