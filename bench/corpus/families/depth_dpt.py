"""DPT-like depth: tokens of several transformer blocks, put together again as maps and refined from coarse to fine."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..blocks import TransformerBlock
from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job
from ..marks import to_host


class Reassemble(nn.Module):
    """Tokens to a map `scale` times as large as the token grid."""

    def __init__(self, dim: int, features: int, scale: float, grid: int) -> None:
        super().__init__()
        self.grid = grid
        self.project = nn.Conv2d(dim, features, 1)
        self.resize: nn.Module = nn.Identity()
        if scale > 1:
            self.resize = nn.ConvTranspose2d(features, features, int(scale), int(scale))
        elif scale < 1:
            self.resize = nn.Conv2d(features, features, 3, 2, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        image = tokens.transpose(1, 2).unflatten(2, (self.grid, self.grid))
        return self.resize(self.project(image))


class ResidualConvUnit(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(features, features, 3, padding=1)
        self.conv2 = nn.Conv2d(features, features, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv2(F.relu(self.conv1(F.relu(x))))


class FeatureFusionBlock(nn.Module):
    def __init__(self, features: int, first: bool) -> None:
        super().__init__()
        self.res1 = None if first else ResidualConvUnit(features)
        self.res2 = ResidualConvUnit(features)
        self.out = nn.Conv2d(features, features, 1)

    def forward(self, x: Tensor, skip: Tensor | None = None) -> Tensor:
        if self.res1 is not None and skip is not None:
            x = x + self.res1(skip)
        x = F.interpolate(self.res2(x), scale_factor=2.0, mode="bilinear", align_corners=True)
        return self.out(x)


class DPT(nn.Module):
    def __init__(self, grid: int, patch: int, dim: int, depth: int, heads: int, features: int) -> None:
        super().__init__()
        self.patch = patch
        self.normalize = Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
        self.patch_embed = nn.Linear(3 * patch**2, dim)
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, grid**2, dim))
        self.blocks = nn.ModuleList(TransformerBlock(dim, heads) for _ in range(depth))
        self.taps = [depth // 3 - 1, 2 * depth // 3 - 1, depth - 1]
        scales = (2.0, 1.0, 0.5)
        self.reassemble = nn.ModuleList(Reassemble(dim, features, scale, grid) for scale in scales)
        self.fusion = nn.ModuleList(FeatureFusionBlock(features, first=number == 0) for number in range(3))
        self.head = nn.Sequential(
            nn.Conv2d(features, features // 2, 3, padding=1),
            nn.Upsample(scale_factor=patch // 4, mode="bilinear", align_corners=True),
            nn.Conv2d(features // 2, 16, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(16, 1, 1),
            nn.Softplus(),
        )

    def forward(self, image: Tensor) -> Tensor:
        """(batch, height, width)."""
        patches = F.pixel_unshuffle(self.normalize(image), self.patch).flatten(2).transpose(1, 2)
        x, tapped = self.patch_embed(patches) + self.pos_embed, []
        for number, block in enumerate(self.blocks):
            x = block(x)
            if number in self.taps:
                tapped.append(x)
        maps = [reassemble(tokens) for reassemble, tokens in zip(self.reassemble, tapped, strict=True)]
        y = self.fusion[0](maps.pop())
        for fusion in list(self.fusion)[1:]:
            y = fusion(y, maps.pop())
        return self.head(y).squeeze(1)


def scale_invariant_loss(depth: Tensor, targets: tuple[Tensor]) -> Tensor:
    """Of Eigen et al. (arXiv 1406.2283), and of the gradients."""
    difference = depth.float().clamp(min=1e-3).log() - targets[0].log()
    spread = difference.square().mean((1, 2)) - 0.5 * difference.mean((1, 2)).square()
    edges = difference.diff(dim=1).abs().mean() + difference.diff(dim=2).abs().mean()
    return spread.mean() + 0.5 * edges


def to_millimetres(depth: Tensor) -> Tensor:
    return to_host(depth.float().mul(1000).clamp(max=32767).to(torch.int16))


def make(rng: random.Random, training: bool) -> Job:
    """Three or six blocks of width 128 to 192, 36 or 64 patches of 8 or 16 pixels."""
    dim, heads, depth = rng.choice([(128, 4, 6), (192, 6, 3), (192, 3, 6)])
    grid, patch = rng.choice([(6, 8), (8, 8), (6, 16)])
    side = grid * patch
    return make_job(
        "depth_dpt",
        DPT(grid, patch, dim, depth, heads, rng.choice([32, 48])),
        training,
        choose_batch_size(rng, at_most=11 if patch == 8 else 7),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (1 + 9 * draw.uniform(side, side),),
        loss=scale_invariant_loss,
        postprocess=to_millimetres,
    )


FAMILY = Family("depth_dpt", "depth", make)
