"""channels-last-missing: a convolutional net in half precision runs in NCHW."""

from __future__ import annotations

import random

from torch import nn

from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.model import BoolArray

from ..fault import Fault
from ..job import Job
from .shared.layouts import without_channels_last
from .shared.operators import convolutions

SLUG = "channels-last-missing"


def apply(job: Job, rng: random.Random) -> bool:
    """Nets that are made for channels last, by their dense convolutions."""
    return without_channels_last(job, SLUG, nn.Conv2d, "NCHW")


def spoils(timeline: Timeline) -> BoolArray:
    """All convolutions over images, forward and backward."""
    return convolutions(timeline, axes=2)


FAULT = Fault(
    SLUG,
    apply,
    spoils=spoils,
    on=frozenset(("device",)),
    excludes=frozenset(("layout-broken-midway", "permute-contiguous-churn", "fp32-without-autocast")),
)
