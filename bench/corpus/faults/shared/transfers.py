"""Batches on their way from the host to the device."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from ...job import Job, Tensors


def is_image(tensor: Tensor) -> bool:
    """Whether a batch's tensor may be images or frames, shape (N, …, C, H, W), as opposed to labels or masks."""
    return tensor.dim() >= 4 and min(tensor.shape[-2:]) >= 4


def prepare_also(job: Job, prepare: Callable[[Tensors], Tensors]) -> None:
    """Prepare batches on the host, after whatever prepares them already."""
    before = job.transfer.prepare
    job.transfer.prepare = prepare if before is None else lambda batch: prepare(before(batch))
