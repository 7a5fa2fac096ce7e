"""host-tensor-index: device tensors are indexed by tensors of the host, which are sent first."""

from __future__ import annotations

import random

import torch
from torch import Tensor

from ..fault import Control, Fault
from ..job import Job
from ..marks import on_host, to_device
from .shared.chance import count
from .shared.places import after_layers, after_model, by_sample, on_inputs

SLUG = "host-tensor-index"


def apply(job: Job, rng: random.Random) -> bool:
    """Samples shuffled by `torch.randperm(n)` (mixup), in inputs or layers, or entries of the outputs picked."""
    match rng.choice(("inputs", "layers", "outputs")):
        case "inputs":
            on_inputs(job, SLUG, lambda inputs: tuple(_mixed(tensor) for tensor in inputs))
        case "layers":
            return after_layers(job, rng, SLUG, _mixed, least=0.1)
        case "outputs":
            picks = count(rng, 1, 24)
            after_model(job, SLUG, lambda outputs: _picked(by_sample(outputs, job.batch_size), picks))
    return True


def _mixed(tensor: Tensor) -> Tensor:
    with on_host():
        order = torch.randperm(tensor.shape[0])
    other = tensor[_sent(order, tensor)]
    return torch.lerp(tensor, other, 0.1) if tensor.is_floating_point() else other


def _picked(outputs: Tensor, picks: int) -> Tensor:
    columns = outputs.shape[1]
    total = outputs.new_zeros(())
    for number in range(picks):
        with on_host():
            chosen = torch.arange(number % columns, columns, 1 + number % 3)
        total = total + outputs[:, _sent(chosen, outputs)].mean()
    return 0.01 * total


def _sent(index: Tensor, indexed: Tensor) -> Tensor:
    """The index as indexing gets it: sent by indexing itself, which stands for itself on a device."""
    return to_device(index, indexed.device, pinned=False, blocking=True) if indexed.device.type == "cpu" else index


def apply_control(job: Job, rng: random.Random) -> bool:
    """The same shuffling with an order made on the device."""

    def change(tensor: Tensor) -> Tensor:
        return torch.lerp(tensor, tensor[torch.randperm(tensor.shape[0], device=tensor.device)], 0.1)

    return after_layers(job, rng, "", change, least=0.1)


FAULT = Fault(SLUG, apply, on=frozenset({"device"}))
CONTROL = Control("indexing by tensors of the device", apply_control)
