"""patchify-conv: patches are cut by a three-dimensional convolution whose stride is its kernel."""

from __future__ import annotations

import random
from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional as F

from ..fault import Control, Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import choose, find, wrap_forward

SLUG = "patchify-conv"
_LEAST_SIDE = 4


def apply(job: Job, rng: random.Random) -> bool:
    """Embeddings of patches by Conv3d as they are; those by Conv2d patch by patch, images being videos of one frame."""
    volumes = find(job.model, nn.Conv3d, lambda conv: _cuts(conv) and conv.kernel_size[-1] >= _LEAST_SIDE)
    images = find(job.model, nn.Conv2d, lambda conv: _cuts(conv) and conv.kernel_size[-1] >= _LEAST_SIDE)
    for place in volumes:
        wrap_forward(place.part, _marked)
    if not volumes:
        by_patch = rng.random() < 0.5
        for place in choose(images, rng):
            _cut_as_volumes(place.part, by_patch)
    return bool(volumes or images)


def _cuts(conv: nn.Conv2d | nn.Conv3d) -> bool:
    return conv.stride == conv.kernel_size and not any(conv.padding) and conv.groups == 1 and conv.dilation[0] == 1


def _marked(original: Callable, x: Tensor) -> Tensor:
    with spoiled(SLUG):
        return original(x)


def _cut_as_volumes(conv: nn.Conv2d, by_patch: bool) -> None:
    """The same weight with an axis for time; `by_patch` as vision-language models do, one small volume a patch."""
    height, width = conv.kernel_size

    def embed(volume: Tensor) -> Tensor:
        return F.conv3d(volume, conv.weight.unsqueeze(2), conv.bias, (1, height, width))

    def of_images(original: Callable, x: Tensor) -> Tensor:
        with spoiled(SLUG):
            return embed(x.unsqueeze(2)).squeeze(2)

    def of_patches(original: Callable, x: Tensor) -> Tensor:
        with spoiled(SLUG):
            patches = _patches(x, height, width)
            embedded = embed(patches.flatten(0, 2).unsqueeze(2)).view(*patches.shape[:3], conv.out_channels)
        return embedded.permute(0, 3, 1, 2)

    wrap_forward(conv, of_patches if by_patch else of_images)


def apply_control(job: Job, rng: random.Random) -> bool:
    """Embeddings of patches by Conv2d become a linear layer on patches, with the same weight."""
    images = find(job.model, nn.Conv2d, _cuts)
    for place in images:
        _cut_by_product(place.part)
    return bool(images)


def _cut_by_product(conv: nn.Conv2d) -> None:
    def forward(original: Callable, x: Tensor) -> Tensor:
        patches = _patches(x, *conv.kernel_size).flatten(3)
        return F.linear(patches, conv.weight.flatten(1), conv.bias).permute(0, 3, 1, 2)

    wrap_forward(conv, forward)


def _patches(x: Tensor, height: int, width: int) -> Tensor:
    """(batch, channels, rows * height, columns * width), what is over left out, to
    (batch, rows, columns, channels, height, width)."""
    rows, columns = x.shape[-2] // height, x.shape[-1] // width
    x = x[..., : rows * height, : columns * width].unflatten(-1, (columns, width)).unflatten(-3, (rows, height))
    return x.permute(0, 2, 4, 1, 3, 5)


FAULT = Fault(SLUG, apply)
CONTROL = Control("patches by a product", apply_control)
