"""sampling-point-copies: deformable attention copies values and sampling points to another layout for each level."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from ..blocks import DeformableAttention, Grid
from ..fault import Control, Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import choose, find, wrap_method

SLUG = "sampling-point-copies"


def apply(job: Job, rng: random.Random) -> bool:
    """Some attentions lay out each level's values by themselves, as Deformable DETR's own PyTorch code, and points."""
    points_too = rng.random() < 0.6
    places = choose(find(job.model, DeformableAttention), rng)
    for place in places:
        _copy_by_level(place.part, points_too)
    return bool(places)


def _copy_by_level(attention: DeformableAttention, points_too: bool) -> None:
    def values(original: Callable, memory: Tensor) -> Tensor:
        return attention.value(memory)

    def sample(original: Callable, values: Tensor, grid: Tensor, grids: tuple[Grid, ...]) -> Tensor:
        levels = values.split([height * width for height, width in grids], dim=1)
        sampled = []
        for level, (tokens, size) in enumerate(zip(levels, grids, strict=True)):
            with spoiled(SLUG):
                image = tokens.flatten(2).transpose(1, 2).reshape(len(tokens) * attention.heads, -1, *size)
                # The points of all levels lie together, those of one level apart.
                points = grid[level].to(image.dtype)
                if points_too:
                    points = points.transpose(1, 2).contiguous().transpose(1, 2).contiguous()
            sampled.append(F.grid_sample(image, points, align_corners=False))
        return torch.cat(sampled, -1)

    wrap_method(attention, "values", values)
    wrap_method(attention, "sample", sample)


def apply_control(job: Job, rng: random.Random) -> bool:
    """Some attentions loop over their levels, two to four, on views."""
    places = choose(find(job.model, DeformableAttention), rng)
    for place in places:
        _loop_over_levels(place.part)
    return bool(places)


def _loop_over_levels(attention: DeformableAttention) -> None:
    def sample(original: Callable, values: Tensor, grid: Tensor, grids: tuple[Grid, ...]) -> Tensor:
        sampled, start = [], 0
        for level, (height, width) in enumerate(grids):
            image = values[..., start : start + height * width].unflatten(-1, (height, width))
            sampled.append(F.grid_sample(image, grid[level].to(values.dtype), align_corners=False))
            start += height * width
        return torch.cat(sampled, -1)

    wrap_method(attention, "sample", sample)


FAULT = Fault(SLUG, apply)
CONTROL = Control("a loop over few levels", apply_control)
