"""volumetric-layout: a net over volumes or videos in half precision runs in NCDHW."""

from __future__ import annotations

import random

from torch import nn

from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.model import BoolArray

from ..fault import Fault
from ..job import Job
from .shared.layouts import without_channels_last
from .shared.operators import convolutions

SLUG = "volumetric-layout"


def apply(job: Job, rng: random.Random) -> bool:
    """Nets that are made for channels last, by their dense convolutions."""
    return without_channels_last(job, SLUG, nn.Conv3d, "NCDHW")


def spoils(timeline: Timeline) -> BoolArray:
    """All convolutions over volumes, forward and backward."""
    return convolutions(timeline, axes=3)


FAULT = Fault(
    SLUG,
    apply,
    spoils=spoils,
    on=frozenset(("device",)),
    excludes=frozenset(("fp32-without-autocast",)),
)
