"""bucket-copies: gradients are copied out of the communication buckets one by one.

Why it is slow: DistributedDataParallel reduces gradients in buckets, large flat tensors, and copies each gradient back
into its own tensor afterwards: one small copy for each parameter, and all gradients are held twice.
Trace: `torch.distributed.ddp.reducer::copy_bucket_to_grad` for each parameter after the backward pass.
Edit: those copies do not run (`gradient_as_bucket_view=True`). The way into the bucket, which also divides by the
number of ranks, stays.
Gate: none beside the saving: for convolutional nets the copies are small and often hidden, and the gain is memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.backward_calls import python_places
from ..timeline.columns import distinct
from ..timeline.edit import Edit
from ..timeline.model import Timeline
from ..timeline.select import count_per_step, events_of, in_typical_step, launched_by
from ..trace.model import IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .ddp import COPY_OUT, operators
from .occurrences import by_site

_MIN_COPIES = 10
"""Fewer copies per step than this are not worth a word."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate for each place that starts a backward pass whose gradients are copied back."""
    copies = operators(timeline, COPY_OUT)
    if not len(copies) or count_per_step(timeline, copies) < _MIN_COPIES:
        return
    anchors = python_places(timeline, copies)
    launched = launched_by(timeline, copies)
    occurrences = (
        Occurrence(anchor, Edit(removed_ops=copies[chosen]), _cost_rows(copies, launched, chosen))
        for anchor in distinct(anchors).tolist()
        for chosen in [np.flatnonzero(anchors == anchor)]
    )
    events = events_of(timeline, in_typical_step(timeline, copies))
    for group in by_site(timeline, occurrences):
        yield Candidate(
            what="each gradient is copied back from its communication bucket",
            remedy="gradients that are views of the buckets",
            occurrences=group,
            evidence=(Evidence("copies", "copies per step", count_per_step(timeline, copies), "", events),),
        )


def _cost_rows(copies: IntArray, launched: list[IntArray], chosen: IntArray) -> IntArray:
    """The device work of the chosen copies, or they themselves where none is recorded."""
    rows = np.sort(np.concatenate([launched[k] for k in chosen.tolist()]))
    return rows if len(rows) else copies[chosen]


PATTERN = Pattern(
    code="TAP909",
    slug="bucket-copies",
    title="Gradients are copied out of buckets",
    fix=FixKind.SAFE,
    find=find,
    group="distributed",
    stage=Stage.HARDWARE,
)
