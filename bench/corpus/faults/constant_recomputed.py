"""constant-recomputed: tables that only sizes determine are made anew in every forward pass."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..fault import Control, Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import Place, choose, wrap_forward
from .shared.parts import find_any, first_inputs

SLUG = "constant-recomputed"
_STRENGTH = 0.01
"""Of what is added to features: a position's share of them is small."""
Table = Callable[[Tensor], Tensor]


def sine_of_tokens(x: Tensor) -> Tensor:
    """(tokens, dim) for features (batch, tokens, dim), as in "Attention is all you need"."""
    tokens, dim = x.shape[-2:]
    position = torch.arange(tokens, device=x.device, dtype=torch.float32).unsqueeze(1)
    rate = torch.exp(torch.arange(0, dim, 2, device=x.device, dtype=torch.float32) * (-math.log(10000.0) / dim))
    angle = position * rate
    return torch.stack((angle.sin(), angle.cos()), dim=2).flatten(1)[:, :dim]


def sine_of_image(x: Tensor) -> Tensor:
    """(channels, height, width) for features (batch, channels, height, width), as DETR's position encoding."""
    channels, height, width = x.shape[-3:]
    mask = torch.ones(1, height, width, device=x.device)
    down, right = mask.cumsum(1, dtype=torch.float32), mask.cumsum(2, dtype=torch.float32)
    down, right = (one / (one.amax() + 1e-6) * 2 * math.pi for one in (down, right))
    half = (channels + 1) // 2
    rate = torch.arange(half, dtype=torch.float32, device=x.device)
    rate = 10000 ** (2 * torch.div(rate, 2, rounding_mode="floor") / half)
    planes = [(one[..., None] / rate).sin() for one in (down, right)]
    return torch.cat(planes, dim=3).permute(0, 3, 1, 2)[0, :channels]


def coordinates(x: Tensor) -> Tensor:
    """(1, height, width): the distance of each place of an image from its middle."""
    rows = torch.linspace(-1, 1, x.shape[-2], device=x.device)
    columns = torch.linspace(-1, 1, x.shape[-1], device=x.device)
    grid = torch.stack(torch.meshgrid(rows, columns, indexing="ij"))
    return grid.square().sum(0, keepdim=True).sqrt()


def resized_positions(x: Tensor) -> Tensor:
    """(channels, height, width): a table of positions brought to the size of the features, as for other resolutions."""
    channels, height, width = x.shape[-3:]
    table = torch.linspace(-1, 1, channels * 14 * 14, device=x.device).view(1, channels, 14, 14)
    return F.interpolate(table, (height, width), mode="bicubic", align_corners=False)[0]


OF_TOKENS: tuple[Table, ...] = (sine_of_tokens,)
OF_IMAGES: tuple[Table, ...] = (sine_of_image, coordinates, resized_positions)


def apply(job: Job, rng: random.Random) -> bool:
    """Encodings of positions that are added to what goes into some layers."""
    places, shapes = _layers(job)
    of_tokens, of_images = rng.choice(OF_TOKENS), rng.choice(OF_IMAGES)
    for place in choose(places, rng, least=0.4):
        _add_made_anew(place.part, of_tokens if shapes[place.part] == 3 else of_images)
    return bool(places)


def _layers(job: Job) -> tuple[list[Place[nn.Module]], dict[nn.Module, int]]:
    """Layers that get tokens or images with their inputs' number of axes; images of a few pixels left out."""
    places = find_any(job.model, (nn.Conv2d, nn.LayerNorm))
    seen = first_inputs(job, [place.part for place in places])
    ranks = {part: x.dim() for part, x in seen.items() if x.dim() in (3, 4) and x.shape[-2] >= 4}
    ranks = {part: rank for part, rank in ranks.items() if (rank == 4) == isinstance(part, nn.Conv2d)}
    return [place for place in places if place.part in ranks], ranks


def _add_made_anew(layer: nn.Module, table: Table) -> None:
    def forward(original: Callable, x: Tensor) -> Tensor:
        with spoiled(SLUG):
            positions = _STRENGTH * table(x).detach()
        return original(x + positions.to(x.dtype))

    wrap_forward(layer, forward)


def apply_control(job: Job, rng: random.Random) -> bool:
    """The same encodings, made once and kept."""
    places, shapes = _layers(job)
    of_images = rng.choice(OF_IMAGES)
    for place in choose(places, rng, least=0.1):
        _add_kept(place.part, sine_of_tokens if shapes[place.part] == 3 else of_images)
    return bool(places)


def _add_kept(layer: nn.Module, table: Table) -> None:
    kept: dict[tuple[torch.Size, torch.dtype], Tensor] = {}

    def forward(original: Callable, x: Tensor) -> Tensor:
        key = (x.shape[1:], x.dtype)
        if key not in kept:
            kept[key] = (_STRENGTH * table(x)).detach().to(x.dtype)
        return original(x + kept[key])

    wrap_forward(layer, forward)


FAULT = Fault(SLUG, apply)
CONTROL = Control("position encodings that are kept", apply_control)
