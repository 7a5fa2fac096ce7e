"""What programs ask of a device besides computing: waiting, and exchanging with other ranks."""

from __future__ import annotations

import random
from collections.abc import Iterable

import torch
from torch import Tensor

from ...marks import act


def synchronize(device: torch.device) -> None:
    """Wait until the device has done all it was given."""
    with act("synchronize"):
        if device.type == "cuda":
            torch.cuda.synchronize(device)


def all_reduce(tensors: Iterable[Tensor]) -> None:
    """Sum tensors over all ranks in one exchange, in order with the computing."""
    with act("allreduce", **{"bytes": size_bytes(tensors), "async": False}):
        pass


def broadcast(tensors: Iterable[Tensor]) -> None:
    """Send tensors from the first rank to all in one exchange."""
    with act("broadcast", bytes=size_bytes(tensors)):
        pass


def size_bytes(tensors: Iterable[Tensor]) -> int:
    """Bytes of all elements."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def usual_ranks(rng: random.Random) -> int:
    """A usual number of devices."""
    return rng.choice((2, 4, 8, 16))
