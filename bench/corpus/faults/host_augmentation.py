"""host-augmentation: images are transformed on the host, one after another, in the loop itself."""

from __future__ import annotations

import random

import torch
from torch import Tensor

from ..fault import Fault
from ..job import Job, Tensors
from ..marks import on_host, spoiled
from .shared.chance import count
from .shared.host_work import TENSOR_TRANSFORMS, as_image, compose
from .shared.transfers import is_image, prepare_also

SLUG = "host-augmentation"


def apply(job: Job, rng: random.Random) -> bool:
    """A pre-processor that takes each image of the batch through one to eight transforms."""
    if not any(is_image(tensor[None]) for tensor in job.make_sample(0)):
        return False
    transform = compose(rng, TENSOR_TRANSFORMS, rounds=count(rng, 1, 8))

    def augment(images: Tensor) -> Tensor:
        changed = [transform(as_image(image)).reshape(image.shape) for image in images]
        return torch.stack(changed).to(images.dtype)

    def prepare(batch: Tensors) -> Tensors:
        with spoiled(SLUG), on_host():
            return tuple(augment(tensor) if is_image(tensor) else tensor for tensor in batch)

    prepare_also(job, prepare)
    return True


FAULT = Fault(SLUG, apply)
