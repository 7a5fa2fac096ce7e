"""What families share: sizes, samples drawn from a number, input normalisation, and the job put together."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .blocks import fold_norms
from .boxes import batched_nms
from .job import Job, Tensors
from .marks import to_host

BATCH_SIZES = (5, 7, 11, 13)
"""Primes: widths, class counts and token counts are products of 2 and 3, so only the batch axis is their multiple."""


def choose_batch_size(rng: random.Random, at_most: int = 13, beside: Sequence[int] = ()) -> int:
    """A batch size that divides none of the leading dimensions given in `beside`."""
    return rng.choice([size for size in BATCH_SIZES if size <= at_most and all(other % size for other in beside)])


class Draw:
    """Random data of one sample, the same for the same number."""

    def __init__(self, number: int) -> None:
        self.generator = torch.Generator().manual_seed(number)

    def image(self, *shape: int) -> Tensor:
        """Bytes as a decoder gives them."""
        return torch.randint(256, shape, dtype=torch.uint8, generator=self.generator)

    def noise(self, *shape: int) -> Tensor:
        """Normally distributed."""
        return torch.randn(shape, generator=self.generator)

    def uniform(self, *shape: int) -> Tensor:
        """Between 0 and 1."""
        return torch.rand(shape, generator=self.generator)

    def label(self, classes: int, *shape: int) -> Tensor:
        """Class numbers, int64; without a shape, one."""
        return torch.randint(classes, shape, generator=self.generator)

    def mask(self, classes: int, *shape: int) -> Tensor:
        """Class numbers, uint8, as annotated masks are stored."""
        return torch.randint(classes, shape, dtype=torch.uint8, generator=self.generator)

    def boxes(self, count: int) -> Tensor:
        """Shape (count, 4): left, top, right, bottom, in shares of the image's sides."""
        corner, extent = self.uniform(count, 2) * 0.7, self.uniform(count, 2) * 0.25 + 0.05
        return torch.cat([corner, corner + extent], dim=1)


class Normalize(nn.Module):
    """Image bytes to normalised floats, on the device, so that bytes are what is sent there."""

    scale: Tensor
    shift: Tensor

    def __init__(self, mean: Sequence[float] = (0.485, 0.456, 0.406), std: Sequence[float] = (0.229, 0.224, 0.225)):
        super().__init__()
        deviation = torch.tensor(std)
        self.register_buffer("scale", (1 / (255 * deviation)).view(-1, 1, 1))
        self.register_buffer("shift", (-torch.tensor(mean) / deviation).view(-1, 1, 1))

    def forward(self, image: Tensor) -> Tensor:
        """uint8 or float of 0 to 255, shape (..., C, H, W)."""
        return image * self.scale + self.shift


def make_job(
    family: str,
    model: nn.Module,
    training: bool,
    batch_size: int,
    *,
    inputs: Callable[[Draw], Tensors],
    targets: Callable[[Draw], Tensors],
    loss: Callable[[Any, Any], Tensor],
    postprocess: Callable[[Any], object] | None = None,
    **settings: Any,
) -> Job:
    """The healthy job of a family: training needs targets and a loss; inference has its normalisations folded into the
    convolutions before them, and post-processes."""

    def make_sample(number: int) -> Tensors:
        draw = Draw(number)
        return (*inputs(draw), *targets(draw)) if training else inputs(draw)

    if training:
        count = len(targets(Draw(0)))
        return Job(family, model.train(), True, make_sample, count, batch_size, compute_loss=loss, **settings)
    return Job(family, fold_norms(model.eval()), False, make_sample, 0, batch_size, postprocess=postprocess, **settings)


def top_classes(logits: Tensor) -> Tensor:
    """The best eight classes of each image with their probabilities, sent to the host in one copy."""
    probability, label = logits.softmax(dim=1).topk(8, dim=1)
    return to_host(torch.stack([probability.float(), label.float()], dim=1))


def detections(boxes: Tensor, scores: Tensor, count: int = 48, threshold: float = 0.5) -> Tensor:
    """The best boxes of a batch, (batch, places, 4) as corners, by their scores, (batch, places, classes): one
    suppression for all images and classes, and one copy to the host, (kept, 7): image, class, score, corners."""
    images, _, classes = scores.shape
    best, place = scores.float().flatten(1).topk(count, dim=1)
    row, label = place.div(classes, rounding_mode="floor"), place % classes
    chosen = boxes.float().gather(1, row.unsqueeze(-1).expand(-1, -1, 4)).flatten(0, 1)
    image = torch.arange(images, device=boxes.device).repeat_interleave(count)
    kept = batched_nms(chosen, best.flatten(), image * classes + label.flatten(), threshold)
    found = torch.cat((torch.stack((image, label.flatten(), best.flatten()), dim=1), chosen), dim=1)
    return to_host(found[kept])


def mask_of_classes(logits: Tensor) -> Tensor:
    """The class of each pixel, (batch, height, width) as bytes, on the host."""
    return to_host(logits.argmax(dim=1).to(torch.uint8))
