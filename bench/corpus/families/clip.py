"""CLIP-like: an image and a text tower, brought together by a contrastive loss; inference classifies by texts."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..blocks import PatchEmbed, TransformerBlock
from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job, top_classes

LENGTH = 16
"""Tokens of a text."""


class ImageTower(nn.Module):
    def __init__(self, grid: int, patch: int, width: int, depth: int, embed: int) -> None:
        super().__init__()
        self.normalize = Normalize((0.481, 0.458, 0.408), (0.269, 0.261, 0.276))
        self.patch_embed = PatchEmbed(3, width, patch)
        self.cls = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.position = nn.Parameter(0.02 * torch.randn(1, grid**2 + 1, width))
        self.ln_pre = nn.LayerNorm(width)
        self.blocks = nn.Sequential(*(TransformerBlock(width, width // 32) for _ in range(depth)))
        self.ln_post = nn.LayerNorm(width)
        self.proj = nn.Linear(width, embed, bias=False)

    def forward(self, image: Tensor) -> Tensor:
        patches = self.patch_embed(self.normalize(image))
        x = torch.cat((self.cls.expand(len(patches), -1, -1), patches), 1) + self.position
        return F.normalize(self.proj(self.ln_post(self.blocks(self.ln_pre(x))[:, 0])), dim=-1)


class TextTower(nn.Module):
    """Causal; the last token stands for the text."""

    causal: Tensor

    def __init__(self, vocabulary: int, width: int, depth: int, embed: int) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(0.01 * torch.randn(1, LENGTH, width))
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "ln_1": nn.LayerNorm(width),
                    "attn": nn.MultiheadAttention(width, width // 32, batch_first=True),
                    "ln_2": nn.LayerNorm(width),
                    "mlp": nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)),
                }
            )
            for _ in range(depth)
        )
        self.ln_final = nn.LayerNorm(width)
        self.proj = nn.Linear(width, embed, bias=False)
        causal = nn.Transformer.generate_square_subsequent_mask(LENGTH)
        self.register_buffer("causal", causal, persistent=False)

    def forward(self, text: Tensor) -> Tensor:
        x = self.token_embedding(text) + self.position
        for layer in self.layers:
            y = layer["ln_1"](x)  # pyright: ignore[reportIndexIssue]
            x = x + layer["attn"](y, y, y, need_weights=False, attn_mask=self.causal, is_causal=True)[0]  # pyright: ignore[reportIndexIssue]
            x = x + layer["mlp"](layer["ln_2"](x))  # pyright: ignore[reportIndexIssue]
        return F.normalize(self.proj(self.ln_final(x[:, -1])), dim=-1)


class CLIP(nn.Module):
    """Training: the embeddings of pairs. Inference: images against the embeddings of all classes' names, which were
    worked out before."""

    class_embeddings: Tensor

    def __init__(self, image: ImageTower, text: TextTower | None, embed: int, classes: int) -> None:
        super().__init__()
        self.image, self.text = image, text
        self.logit_scale = nn.Parameter(torch.tensor(2.66)) if text is not None else None
        self.register_buffer("class_embeddings", F.normalize(torch.randn(classes, embed), dim=-1))

    def forward(self, image: Tensor, text: Tensor | None = None):
        seen = self.image(image)
        if self.text is None or self.logit_scale is None or text is None:
            return 14.3 * F.linear(seen, self.class_embeddings)
        return self.logit_scale.exp() * seen @ self.text(text).T


def contrastive(logits: Tensor, targets: tuple[Tensor]) -> Tensor:
    """Each image belongs to the text of its own row."""
    own = torch.arange(len(logits), device=logits.device)
    return (F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own)) / 2


def make(rng: random.Random, training: bool) -> Job:
    """Three to six blocks of width 128 or 192 in the image tower, two or three in the text tower."""
    width, depth = rng.choice([(128, 6), (192, 4), (128, 4), (192, 3)])
    grid, patch = rng.choice([(6, 16), (8, 8), (8, 16)])
    embed, side = rng.choice([96, 128]), grid * patch
    vocabulary = rng.choice([1024, 2048, 4096])
    text = TextTower(vocabulary, rng.choice([96, 128]), rng.choice([2, 3]), embed) if training else None
    words = (lambda draw: (draw.label(vocabulary, LENGTH),)) if training else lambda draw: ()
    return make_job(
        "clip",
        CLIP(ImageTower(grid, patch, width, depth, embed), text, embed, classes=96),
        training,
        choose_batch_size(rng),
        inputs=lambda draw: (draw.image(3, side, side), *words(draw)),
        targets=lambda draw: (),
        loss=contrastive,
        postprocess=top_classes,
    )


FAMILY = Family("clip", "retrieval", make)
