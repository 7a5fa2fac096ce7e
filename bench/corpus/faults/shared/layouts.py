"""Layouts of tensors in memory."""

from __future__ import annotations

from torch import nn

from ...job import Job
from ...surgery import find
from .dtypes import HALF


def without_channels_last(job: Job, slug: str, kind: type[nn.Conv2d | nn.Conv3d], layout: str) -> bool:
    """Leave a net that is made for channels last, by its dense convolutions of a kind, in the plain layout."""
    dense = find(job.model, kind, lambda conv: conv.groups == 1 and max(conv.kernel_size) > 1)
    if not job.channels_last or job.autocast not in HALF or len(dense) < 2:
        return False
    job.channels_last = False
    job.settings[slug] = layout
    return True
