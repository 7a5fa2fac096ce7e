"""Deformable DETR: three scales, attention to a few sampled points of each."""

from __future__ import annotations

import random
from functools import partial

import torch
from torch import Tensor, nn

from ..blocks import Attention, ConvNormAct, DeformableAttention, Grid, Mlp
from ..boxes import Matcher
from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job
from .detr import predict, set_loss


class EncoderLayer(nn.Module):
    def __init__(self, dim: int, heads: int, levels: int, points: int) -> None:
        super().__init__()
        self.attn = DeformableAttention(dim, heads, levels, points)
        self.norm1 = nn.LayerNorm(dim)
        self.mlp = Mlp(dim, 4 * dim)
        self.norm2 = nn.LayerNorm(dim)

    def forward(self, x: Tensor, references: Tensor, grids: tuple[Grid, ...]) -> Tensor:
        x = self.norm1(x + self.attn(x, references, x, grids))
        return self.norm2(x + self.mlp(x))


class DecoderLayer(nn.Module):
    def __init__(self, dim: int, heads: int, levels: int, points: int) -> None:
        super().__init__()
        self.self_attn = Attention(dim, heads)
        self.norm1 = nn.LayerNorm(dim)
        self.cross_attn = DeformableAttention(dim, heads, levels, points)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = Mlp(dim, 4 * dim)
        self.norm3 = nn.LayerNorm(dim)

    def forward(self, x: Tensor, references: Tensor, memory: Tensor, grids: tuple[Grid, ...]) -> Tensor:
        x = self.norm1(x + self.self_attn(x))
        x = self.norm2(x + self.cross_attn(x, references, memory, grids))
        return self.norm3(x + self.mlp(x))


class DeformableDETR(nn.Module):
    cells: Tensor

    def __init__(
        self, side: int, widths: tuple[int, ...], dim: int, layers: tuple[int, int], queries: int, classes: int
    ) -> None:
        super().__init__()
        heads, points, levels = dim // 32, 4, len(widths)
        self.normalize = Normalize()
        self.stem = ConvNormAct(3, widths[0] // 2, kernel=7, stride=4)
        inputs = [widths[0] // 2, *widths[:-1]]
        self.stages = nn.ModuleList(
            nn.Sequential(ConvNormAct(a, b, stride=2), ConvNormAct(b, b)) for a, b in zip(inputs, widths, strict=True)
        )
        self.projections = nn.ModuleList(nn.Conv2d(width, dim, 1) for width in widths)
        self.grids = tuple((side // (8 << level), side // (8 << level)) for level in range(levels))
        tokens = [height * width for height, width in self.grids]
        self.position = nn.Parameter(0.02 * torch.randn(1, sum(tokens), dim))
        self.register_buffer("cells", torch.cat([centres(grid) for grid in self.grids]).unsqueeze(0))
        self.encoder = nn.ModuleList(EncoderLayer(dim, heads, levels, points) for _ in range(layers[0]))
        self.queries = nn.Parameter(torch.randn(1, queries, dim))
        self.references = nn.Parameter(torch.randn(1, queries, 2))
        self.decoder = nn.ModuleList(DecoderLayer(dim, heads, levels, points) for _ in range(layers[1]))
        self.matcher = Matcher()
        self.class_head, self.box_head = nn.Linear(dim, classes), nn.Linear(dim, 4)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        x = self.stem(self.normalize(image))
        tokens = []
        for stage, projection in zip(self.stages, self.projections, strict=True):
            x = stage(x)
            tokens.append(projection(x).flatten(2).transpose(1, 2))
        memory = torch.cat(tokens, 1) + self.position
        cells = self.cells.expand(len(memory), -1, -1)
        for layer in self.encoder:
            memory = layer(memory, cells, self.grids)
        y, references = self.queries.expand(len(memory), -1, -1), self.references.sigmoid().expand(len(memory), -1, -1)
        found = []
        for layer in self.decoder:
            y = layer(y, references, memory, self.grids)
            found.append(y)
        outputs = torch.stack(found if self.training else found[-1:])
        centre, size = self.box_head(outputs).float().chunk(2, -1)
        boxes = torch.cat((centre + self.references, size), -1).sigmoid()
        return self.class_head(outputs).float(), boxes


def centres(grid: Grid) -> Tensor:
    """(tokens, 2): x and y, 0 to 1."""
    y, x = torch.meshgrid(*((torch.arange(side) + 0.5) / side for side in grid), indexing="ij")
    return torch.stack((x, y), -1).view(-1, 2)


def make(rng: random.Random, training: bool) -> Job:
    """One to three layers each of width 64 to 128, images of 64 or 96 pixels."""
    side = rng.choice([64, 96])
    layers = rng.choice([(1, 2), (2, 2), (2, 3)])
    classes = rng.choice([16, 24, 48])
    widths, dim = rng.choice([((32, 64, 128), 64), ((32, 64, 128), 128), ((48, 96, 192), 96)])
    model = DeformableDETR(side, widths, dim, layers, rng.choice([24, 48]), classes)
    return make_job(
        "deformable_detr",
        model,
        training,
        choose_batch_size(rng),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (draw.label(classes - 1, 8), 0.2 + 0.4 * draw.uniform(8, 4)),
        loss=partial(set_loss, model.matcher),
        postprocess=predict,
    )


FAMILY = Family("deformable_detr", "detection", make)
