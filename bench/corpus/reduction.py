"""What DistributedDataParallel does with gradients, for runs that stand for one rank of several.

Gradients are grouped into buckets in the reverse order of the parameters; a bucket is reduced at the moment its last
gradient is ready, beside the rest of the backward pass (torch/nn/parallel/distributed.py; Li et al., arXiv 2006.15704).
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from torch import nn

from . import marks
from .job import Job

TYPICAL_BYTES = 100 << 20
"""Gradients of an ordinary model (ResNet-50). The corpus's models are smaller; their buckets are made so by as much."""
EACH_MICRO_STEP = "sync-every-micro-step"


class Reduction:
    """Marks the all-reduce of each bucket of a job's model."""

    def __init__(self, job: Job) -> None:
        parameters = [parameter for parameter in job.model.parameters() if parameter.requires_grad]
        total_bytes = sum(parameter.nbytes for parameter in parameters)
        self._buckets = _bucket_bytes(parameters[::-1], total_bytes * job.bucket_bytes / TYPICAL_BYTES)
        self._each_micro_step = EACH_MICRO_STEP in job.settings
        self._pending: list[int] = []
        self._is_last = True
        owners = [bucket for bucket, (count, _) in enumerate(self._buckets) for _ in range(count)]
        for parameter, bucket in zip(parameters[::-1], owners, strict=True):
            parameter.register_post_accumulate_grad_hook(lambda _, bucket=bucket: self._ready(bucket))

    def begin(self, *, is_last: bool) -> None:
        """A micro-step begins; only the last of a step reduces, unless the job's settings say otherwise."""
        self._is_last = is_last
        self._pending = [count for count, _ in self._buckets]

    def _ready(self, bucket: int) -> None:
        self._pending[bucket] -= 1
        if self._pending[bucket] == 0 and (self._is_last or self._each_micro_step):
            with self._marked(), marks.act("allreduce", bytes=self._buckets[bucket][1], **{"async": 1}):
                pass

    def _marked(self) -> AbstractContextManager[object]:
        return marks.healthy() if self._is_last else marks.spoiled(EACH_MICRO_STEP)


def _bucket_bytes(parameters: list[nn.Parameter], most_bytes: float) -> list[tuple[int, int]]:
    """How many parameters each bucket holds, and their bytes: a bucket is full once it has `most_bytes`."""
    buckets, count, size = [], 0, 0
    for parameter in parameters:
        count, size = count + 1, size + parameter.nbytes
        if size >= most_bytes:
            buckets.append((count, size))
            count = size = 0
    return [*buckets, (count, size)] if count else buckets
