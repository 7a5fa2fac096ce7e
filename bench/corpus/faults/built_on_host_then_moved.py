"""built-on-host-then-moved: tensors of the same size are made on the host in every step and sent to the device."""

from __future__ import annotations

import random

import torch
from torch import Tensor

from ..fault import Control, Fault
from ..job import Job
from ..marks import on_host, to_device
from .shared.places import after_layers, on_inputs

SLUG = "built-on-host-then-moved"


def apply(job: Job, rng: random.Random) -> bool:
    """Noise, masks, coordinates or weights, made for some layers' outputs or for the inputs."""
    build = rng.choice((_noise, _mask, _coordinates, _constants))

    def add(tensor: Tensor) -> Tensor:
        with on_host():
            made = build(tensor)
        return tensor + 0.01 * to_device(made, tensor.device, pinned=False, blocking=True).to(tensor.dtype)

    has_floats = any(tensor.is_floating_point() for tensor in job.make_sample(0)[: -job.targets or None])
    if has_floats and rng.random() < 0.3:
        on_inputs(job, SLUG, lambda inputs: tuple(add(one) if one.is_floating_point() else one for one in inputs))
        return True
    return after_layers(job, rng, SLUG, add, least=0.1)


def _noise(like: Tensor) -> Tensor:
    return torch.randn(like.shape)


def _mask(like: Tensor) -> Tensor:
    return torch.ones(like.shape[-2:] if like.dim() > 1 else like.shape).tril()


def _coordinates(like: Tensor) -> Tensor:
    rows, columns = like.shape[-2] if like.dim() > 1 else 1, like.shape[-1]
    across, down = torch.linspace(-1, 1, columns), torch.linspace(-1, 1, rows)
    return (across[None] ** 2 + down[:, None] ** 2).sqrt()


def _constants(like: Tensor) -> Tensor:
    return torch.tensor([0.1 * number for number in range(like.shape[-1])])


def apply_control(job: Job, rng: random.Random) -> bool:
    """The same noise, made on the device."""

    def change(tensor: Tensor) -> Tensor:
        return tensor + 0.01 * torch.randn_like(tensor)

    return after_layers(job, rng, "", change, least=0.1)


FAULT = Fault(SLUG, apply, on=frozenset({"device"}))
CONTROL = Control("noise made on the device", apply_control)
