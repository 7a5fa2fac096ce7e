"""numpy-on-the-way: images go through numpy's layouts and copies before they are tensors again."""

from __future__ import annotations

import random

import numpy as np
import torch
from torch import Tensor

from ..fault import Fault
from ..job import Job, Tensors
from ..marks import on_host, spoiled, to_host
from .shared.chance import count
from .shared.places import after_model, largest
from .shared.transfers import is_image, prepare_also

SLUG = "numpy-on-the-way"


def apply(job: Job, rng: random.Random) -> bool:
    """Before the model, images to HWC and back as floats; or after it, the outputs as arrays for a drawing routine."""
    has_images = any(is_image(tensor[None]) for tensor in job.make_sample(0))
    if has_images and (job.is_training or rng.random() < 0.6):
        _before_model(job, rounds=count(rng, 1, 10))
    else:
        _after_model(job, rounds=count(rng, 1, 30))
    return True


def _before_model(job: Job, rounds: int) -> None:
    def convert(images: Tensor) -> Tensor:
        array = images.numpy()
        for _ in range(rounds):
            array = np.ascontiguousarray(np.moveaxis(array, -3, -1))
            array = array.astype(np.float32) / 255.0
            array = np.ascontiguousarray(np.moveaxis(array, -1, -3) * 255.0)
        return torch.from_numpy(array).to(images.dtype)

    def prepare(batch: Tensors) -> Tensors:
        with spoiled(SLUG), on_host():
            return tuple(convert(tensor) if is_image(tensor) else tensor for tensor in batch)

    prepare_also(job, prepare)


def _after_model(job: Job, rounds: int) -> None:
    def draw(outputs: object) -> None:
        found = to_host(largest(outputs))
        with on_host():
            array = found.float().numpy()
            for _ in range(rounds):
                array = np.ascontiguousarray(np.moveaxis(array, -1, 0))
            low, high = float(array.min()), float(array.max())
            torch.from_numpy(((array - low) / (high - low + 1e-6) * 255).astype(np.uint8)).clone()

    after_model(job, SLUG, draw)


FAULT = Fault(SLUG, apply)
