"""DistributedDataParallel really run in this process, as the only rank of its group: what it does itself shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from torchtraceap.analyzer.trace.model import Trace

from .recorded import record


@contextmanager
def gloo() -> Iterator[None]:
    """A process group of one rank; skips the test where torch has none."""
    dist = pytest.importorskip("torch.distributed")
    if not dist.is_available() or not dist.is_gloo_available():
        pytest.skip("torch.distributed has no gloo here")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()


def norms_and_layers(layers: int, width: int = 8) -> Any:
    """A net of many small parameters and buffers."""
    nn = pytest.importorskip("torch").nn
    parts = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU())]
    return nn.Sequential(*parts)


def record_training(net: Any, *, batch: int = 4, micro_batches: int = 1, **options: Any) -> Trace:
    """Steps of forward, backward and SGD of `DistributedDataParallel(net, **options)`."""
    torch = pytest.importorskip("torch")
    from torch.nn.parallel import DistributedDataParallel

    with gloo():
        wrapped = DistributedDataParallel(net, **options)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        images = torch.rand(batch, 8)

        def step() -> None:
            for _ in range(micro_batches):
                wrapped(images).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

        return record(step)
