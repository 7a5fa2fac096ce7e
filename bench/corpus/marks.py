"""Ranges that the corpus puts into its recordings, and takes out again before anybody learns from them.

`spoiled` says which events an injected fault has made. `on_host` and the acts say what a device would do where the
recording machine has none; the simulator reads them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from torch.profiler import record_function

PREFIX = "corpus."
SPOILED = PREFIX + "spoiled "
"""`corpus.spoiled SLUG`: what runs inside, and its backward pass, is what the fault made."""
HEALTHY = PREFIX + "healthy"
ON_HOST = PREFIX + "host"
"""Operators inside work on host tensors: they stay on the CPU in a simulated trace (metrics, pre-processing)."""
ACT = PREFIX + "act "
"""`corpus.act NAME KEY=VALUE …`: what a program does with a device."""


def spoiled(slug: str) -> AbstractContextManager[object]:
    """Everything inside is work of the fault `slug`."""
    return record_function(SPOILED + slug)


def healthy() -> AbstractContextManager[object]:
    """Stands where a fault may be and is none, so that recordings with and without it have the same frames."""
    return record_function(HEALTHY)


def on_host() -> AbstractContextManager[object]:
    """Everything inside works on host tensors."""
    return record_function(ON_HOST)


def act(name: str, **details: object) -> AbstractContextManager[object]:
    """What a device would do here. The acts: `htod` (pinned=0|1, blocking=0|1), `dtoh` (blocking=0|1), `synchronize`,
    `empty_cache` (frees and allocates again), `allreduce` (bytes=N, async=0|1), `broadcast` (bytes=N), `fallback`."""
    return record_function(ACT + " ".join([name, *(f"{key}={int(value)}" for key, value in details.items())]))  # type: ignore[call-overload]


def to_device(
    tensor: torch.Tensor, device: torch.device, *, pinned: bool = True, blocking: bool = False
) -> torch.Tensor:
    """Move a tensor to the device; where that is the CPU, note that it would be moved."""
    if device.type == "cpu":
        with act("htod", pinned=pinned, blocking=blocking):
            return tensor.clone()
    source = tensor.pin_memory() if pinned else tensor
    return source.to(device, non_blocking=not blocking)


def to_host(tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor to the host, which waits for it."""
    if tensor.device.type == "cpu":
        with act("dtoh", blocking=True):
            return tensor.detach().clone()
    return tensor.detach().cpu()
