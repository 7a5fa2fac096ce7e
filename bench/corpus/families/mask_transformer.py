"""MaskFormer-like: queries become classes and masks, by products with a map of features for each pixel."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..blocks import Attention, ConvNormAct, CrossAttention, Mlp, Residual, Upsample
from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job
from ..marks import to_host


class QueryLayer(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.cross = nn.LayerNorm(dim), CrossAttention(dim, heads)
        self.norm2, self.own = nn.LayerNorm(dim), Attention(dim, heads)
        self.norm3, self.mlp = nn.LayerNorm(dim), Mlp(dim, 4 * dim)

    def forward(self, queries: Tensor, memory: Tensor) -> Tensor:
        queries = queries + self.cross(self.norm1(queries), memory)
        queries = queries + self.own(self.norm2(queries))
        return queries + self.mlp(self.norm3(queries))


class MaskTransformer(nn.Module):
    def __init__(self, side: int, width: int, dim: int, depth: int, queries: int, classes: int) -> None:
        super().__init__()
        self.normalize = Normalize()
        self.stem = nn.Sequential(ConvNormAct(3, width, stride=2), ConvNormAct(width, 2 * width, stride=2))
        self.deep = nn.Sequential(
            ConvNormAct(2 * width, 4 * width, stride=2),
            Residual(ConvNormAct(4 * width, 4 * width), ConvNormAct(4 * width, 4 * width)),
            Residual(ConvNormAct(4 * width, 4 * width), ConvNormAct(4 * width, 4 * width)),
        )
        self.to_memory = nn.Conv2d(4 * width, dim, 1)
        self.position = nn.Parameter(0.02 * torch.randn(1, (side // 8) ** 2, dim))
        self.up = Upsample(4 * width, 2 * width)
        self.to_pixels = nn.Conv2d(2 * width, dim, 1)
        self.queries = nn.Parameter(torch.randn(1, queries, dim))
        self.layers = nn.ModuleList(QueryLayer(dim, dim // 32) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.class_head, self.mask_head = nn.Linear(dim, classes), Mlp(dim, dim)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, queries, classes), (batch, queries, height / 4, width / 4)."""
        low = self.stem(self.normalize(image))
        deep = self.deep(low)
        memory = self.to_memory(deep).flatten(2).transpose(1, 2) + self.position
        pixels = self.to_pixels(low + self.up(deep))
        queries = self.queries.expand(len(memory), -1, -1)
        for layer in self.layers:
            queries = layer(queries, memory)
        queries = self.norm(queries)
        masks = torch.bmm(self.mask_head(queries), pixels.flatten(2))
        return self.class_head(queries), masks.unflatten(-1, pixels.shape[-2:])


def mask_loss(outputs: tuple[Tensor, Tensor], targets: tuple[Tensor, Tensor]) -> Tensor:
    """The first queries stand for the targets, one each; the others for nothing, the last class."""
    classes, masks = outputs
    labels, wanted = targets
    count = labels.shape[1]
    rest = classes.shape[1] - count
    class_loss = F.cross_entropy(classes.mT, F.pad(labels, (0, rest), value=classes.shape[-1] - 1))
    logits, wanted = masks[:, :count].flatten(2), wanted.to(masks.dtype).flatten(2)
    chance = logits.sigmoid()
    dice = 1 - (2 * (chance * wanted).sum(-1) + 1) / (chance.sum(-1) + wanted.sum(-1) + 1)
    return class_loss + F.binary_cross_entropy_with_logits(logits, wanted) + dice.mean()


def panoptic(outputs: tuple[Tensor, Tensor]) -> Tensor:
    """Which query, and of which class, owns each pixel; (batch, 2, height, width) as bytes."""
    classes, masks = outputs
    score, label = classes.float().softmax(-1)[..., :-1].max(-1)
    masks = F.interpolate(masks.float().sigmoid(), scale_factor=4.0, mode="bilinear", align_corners=False)
    owner = (masks * score[..., None, None]).argmax(1)
    kind = label.gather(1, owner.flatten(1)).view_as(owner)
    return to_host(torch.stack((owner, kind), dim=1).to(torch.uint8))


def make(rng: random.Random, training: bool) -> Job:
    """Two to four layers of width 96 to 192, 24 or 48 queries, images of 96 or 128 pixels."""
    side = rng.choice([96, 128])
    width, dim = rng.choice([(16, 96), (16, 128), (24, 96), (24, 192)])
    classes = rng.choice([16, 24])
    return make_job(
        "mask_transformer",
        MaskTransformer(side, width, dim, rng.choice([2, 3, 4]), rng.choice([24, 48]), classes),
        training,
        choose_batch_size(rng, at_most=11),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (draw.label(classes - 1, 8), draw.mask(2, 8, side // 4, side // 4)),
        loss=mask_loss,
        postprocess=panoptic,
    )


FAMILY = Family("mask_transformer", "segmentation", make)
