"""wide-dtype-transfer: images are widened on the host, then sent at four or eight times their size."""

from __future__ import annotations

import random

import torch
from torch import Tensor

from ..fault import Fault
from ..job import Job, Tensors
from .shared.places import on_inputs
from .shared.transfers import is_image, prepare_also

SLUG = "wide-dtype-transfer"


def apply(job: Job, rng: random.Random) -> bool:
    """Images of bytes sent as float32, or by way of numpy's default as float64 and narrowed on the device."""
    samples = job.make_sample(0)
    are_bytes = [tensor.dtype == torch.uint8 and is_image(tensor[None]) for tensor in samples]
    if job.transfer.slug or not any(are_bytes[: len(samples) - job.targets]):
        return False
    wide = rng.choice((torch.float32, torch.float32, torch.float64))
    scales = rng.random() < 0.5

    def widen(tensor: Tensor) -> Tensor:
        wider = tensor.to(wide)
        return wider.div(255).mul(255) if scales else wider

    def prepare(batch: Tensors) -> Tensors:
        inputs = len(batch) - job.targets
        return tuple(
            widen(tensor) if place < inputs and are_bytes[place] else tensor for place, tensor in enumerate(batch)
        )

    prepare_also(job, prepare)
    if wide is torch.float64:
        on_inputs(job, SLUG, lambda inputs: tuple(one.float() if one.dtype == wide else one for one in inputs))
    job.transfer.slug = SLUG
    return True


FAULT = Fault(SLUG, apply, on=frozenset({"device"}), excludes=frozenset({"pageable-transfer", "blocking-transfer"}))
