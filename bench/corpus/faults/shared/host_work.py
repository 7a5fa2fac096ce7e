"""What loaders and pre-processing spend the host's time on: decoding, random transforms, conversions."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ...marks import on_host

Transform = Callable[[Tensor], Tensor]
"""Of a float image, shape (C, H, W), into one of the same shape."""


def as_image(tensor: Tensor) -> Tensor:
    """A sample's tensor as a float image, whatever it is: (channels or frames, height, width)."""
    if tensor.dim() >= 3:
        return tensor.reshape(-1, *tensor.shape[-2:]).float()
    return torch.rand(3, 64, 64)


def blur(image: Tensor) -> Tensor:
    """Gaussian blur, 5 x 5."""
    line = torch.tensor([1.0, 4.0, 6.0, 4.0, 1.0]) / 16
    return F.conv2d(image[:, None], (line[:, None] * line)[None, None], padding=2)[:, 0]


def jitter(image: Tensor) -> Tensor:
    """Brightness and contrast."""
    factor = 1 + 0.2 * torch.rand(())
    mean = image.mean()
    return ((image - mean) * factor + mean).clamp(0, 255) * (0.8 + 0.4 * torch.rand(()))


def crop(image: Tensor) -> Tensor:
    """A random crop, scaled back with antialiasing."""
    height, width = image.shape[-2:]
    top, left = int(torch.randint(height // 4 + 1, ())), int(torch.randint(width // 4 + 1, ()))
    part = image[:, top : top + max(height - height // 4, 1), left : left + max(width - width // 4, 1)]
    return F.interpolate(part[None], (height, width), mode="bilinear", antialias=True)[0]


def enlarge(image: Tensor) -> Tensor:
    """Bicubic scaling up, as of a small original, and down again."""
    height, width = image.shape[-2:]
    large = F.interpolate(image[None], (2 * height, 2 * width), mode="bicubic", align_corners=False)
    return F.interpolate(large, (height, width), mode="bilinear", align_corners=False)[0]


def flip(image: Tensor) -> Tensor:
    """Mirrored, and copied."""
    return image.flip(-1).contiguous()


def normalize(image: Tensor) -> Tensor:
    """Mean and deviation of the image itself."""
    return (image / 255 - image.mean() / 255) / (image.std() / 255 + 1e-3)


def elastic(image: Tensor) -> Tensor:
    """A random smooth distortion."""
    height, width = image.shape[-2:]
    coarse = torch.rand(1, 2, 4, 4) * 0.1
    shift = F.interpolate(coarse, (height, width), mode="bilinear", align_corners=False)[0].permute(1, 2, 0)
    rows, columns = torch.linspace(-1, 1, height), torch.linspace(-1, 1, width)
    grid = torch.stack(torch.meshgrid(rows, columns, indexing="ij")[::-1], dim=-1)
    return F.grid_sample(image[None], (grid + shift)[None], align_corners=False)[0]


def numpy_noise(image: Tensor) -> Tensor:
    """Salt and pepper by numpy."""
    array = image.numpy().copy()
    noise = np.random.default_rng(int(array.size)).random(array.shape)
    array[noise < 0.02], array[noise > 0.98] = 0, 255
    return torch.from_numpy(array)


def decode(image: Tensor) -> Tensor:
    """Decompression, the part of a decoder that costs most."""
    packed = zlib.compress(image.to(torch.uint8).contiguous().numpy().tobytes(), level=1)
    array = np.frombuffer(zlib.decompress(packed), dtype=np.uint8).reshape(image.shape)
    return torch.from_numpy(array.astype(np.float32))


TENSOR_TRANSFORMS: tuple[Transform, ...] = (blur, jitter, crop, enlarge, flip, normalize, elastic)
TRANSFORMS: tuple[Transform, ...] = (*TENSOR_TRANSFORMS, numpy_noise, decode)


def compose(rng: random.Random, transforms: Sequence[Transform], rounds: int) -> Transform:
    """So many transforms after one another, chosen at random."""
    chosen = [rng.choice(transforms) for _ in range(rounds)]

    def run(image: Tensor) -> Tensor:
        for transform in chosen:
            image = transform(image)
        return image

    return run


def dear_samples(
    make_sample: Callable[[int], tuple[Tensor, ...]], transform: Transform
) -> Callable[[int], tuple[Tensor, ...]]:
    """A data set's samples, each of which costs a transform; shapes and types stay."""

    def make(number: int) -> tuple[Tensor, ...]:
        first, *others = make_sample(number)
        with on_host():
            image = transform(as_image(first))
            if image.numel() == first.numel():
                first = image.reshape(first.shape).to(first.dtype)
        return (first, *others)

    return make
