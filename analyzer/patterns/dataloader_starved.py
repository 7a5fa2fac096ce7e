"""dataloader-starved: the step waits for the loader's workers, which make batches more slowly than the step uses them.

Why it is slow: each batch takes the workers longer than their number times the step; the device, or the model on the
CPU, stands still for the rest.
Trace: `enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__` takes 5 % of the steps or more, in two steps or
more.
Edit: twice the workers. The step then takes half of what it takes now, but never less than without the waits, and
taking a finished batch over stays: 1 ms, measured with torch 2.13 (a queue read, memory mapped, tensors rebuilt).
Gate: waits that only take a finished batch over, however many tensors it has (see small-tensor-ipc); the first batch of
an epoch; a single long wait among many short ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import median
from ..timeline.edit import Edit, Scale
from ..timeline.model import Timeline
from ..timeline.select import events_of, in_typical_step, inside
from ..trace.model import NONE, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .loading import TAKEOVER_NS, come_in_bursts, starved_waits, unpicklings

_MORE = 2.0
"""How many times the batches twice the workers make."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per loop that waits for its loader's workers."""
    for waits in starved_waits(timeline):
        factor = _left(timeline, waits)
        if factor >= 1.0:
            continue
        wait_ms = timeline.trace.dur_ns[waits] / 1e6
        events = events_of(timeline, in_typical_step(timeline, waits))
        yield Candidate(
            what="the step waits for the loader's workers",
            remedy="more workers",
            occurrences=tuple(
                Occurrence(row, Edit(scales=(Scale(np.array([row]), factor),)), np.array([row]))
                for row in waits.tolist()
            ),
            evidence=(
                Evidence("wait", "mean wait for a batch", round(float(wait_ms.mean()), 3), "ms", events),
                Evidence("longest", "longest wait", round(float(wait_ms.max()), 3), "ms"),
                Evidence("device", "device idle in the step", round(timeline.breakdown.step_idle_pct, 1), "%"),
            ),
            is_periodic=come_in_bursts(timeline, waits),
            probability=0.9,
        )


def _left(timeline: Timeline, waits: IntArray) -> float:
    """The share of the waits that twice the workers leave."""
    steps = timeline.steps
    wait_ns = float(timeline.trace.dur_ns[waits].sum())
    taken = unpicklings(timeline)
    taking_ns = float(timeline.trace.dur_ns[taken[inside(timeline, taken, waits) != NONE]].sum())
    total_ns = float(steps.duration_ns[steps.steady].sum())
    needed_ns = max(total_ns / _MORE, total_ns - wait_ns)
    takeover_ns = max(taking_ns, min(float(TAKEOVER_NS), median(timeline.trace.dur_ns[waits])) * len(waits))
    return max(needed_ns - (total_ns - wait_ns), takeover_ns) / wait_ns


PATTERN = Pattern(
    code="TAP102",
    slug="dataloader-starved",
    title="Loader workers too slow for the step",
    fix=FixKind.SAFE,
    find=find,
    group="data and host",
    stage=Stage.HARDWARE,
)
