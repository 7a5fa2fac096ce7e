"""graph-kept-alive: memory grows from step to step, because something keeps each step's graph.

Why it matters: a tensor that is kept with its graph keeps all that its backward would need. The run gets slower as
memory has to be found anew, and ends when there is no more.
Trace: with `profile_memory=True` what is allocated at the end of each steady step rises by as much again, in several
allocations; without memory records a training step is only asked about in the source, and is a hint at most.
Gate: growth under 1 MiB or one per cent of the step's own peak; steps that do not all grow; fewer than three of them;
growth in a few large pieces (results that are kept on purpose, a cache, a loader's queue).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.columns import median
from ..timeline.memory import MemoryUse, memory_uses
from ..timeline.model import Timeline
from .base import Candidate, FixKind, Pattern
from .runs import gradients

_LEAST_STEPS = 3
_LEAST_BYTES = 1 << 20
_LEAST_SHARE_OF_PEAK = 0.01
_LEAST_ALLOCATIONS = 4
_BYTES_PER_MB = 1e6
_WHAT = "memory grows from step to step"
_REMEDY = "keeping detached values"


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per device whose allocations grow; without records one that only the source can confirm."""
    if not len(timeline.trace.memory.ts_ns):
        if gradients(timeline) is not None and not timeline.steps.is_cold:
            yield Candidate(what=_WHAT, remedy=_REMEDY, occurrences=(), evidence=(), unmeasured="profile_memory=True")
        return
    for use in memory_uses(timeline):
        grown, pieces = _growth(timeline, use)
        if grown:
            yield Candidate(
                what=_WHAT,
                remedy=f"{_REMEDY} lets each step's memory go",
                occurrences=(),
                evidence=(
                    Evidence("growth", "more allocated after each step", round(grown / _BYTES_PER_MB, 2), "MB"),
                    Evidence("pieces", "allocations that stay, per step", pieces, ""),
                ),
                probability=0.8,
                informational=True,
            )


def _growth(timeline: Timeline, use: MemoryUse) -> tuple[float, float]:
    """Bytes and allocations by which what is in use grows with each steady step; 0 where it does not always."""
    steps = timeline.steps.steady
    if len(steps) < _LEAST_STEPS:
        return 0.0, 0.0
    starts, ends = timeline.steps.start_ns[steps], timeline.steps.end_ns[steps]
    grown = use.at(ends) - use.at(starts)
    pieces = use.live_allocations_at(ends) - use.live_allocations_at(starts)
    own = [use.peak_bytes(start, end) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    above = median(np.array(own) - use.at(starts))
    least = max(_LEAST_BYTES, _LEAST_SHARE_OF_PEAK * above)
    is_steady = bool(np.all(grown >= least)) and bool(np.all(pieces >= _LEAST_ALLOCATIONS))
    return (median(grown), median(pieces)) if is_steady else (0.0, 0.0)


PATTERN = Pattern(
    code="TAP806",
    slug="graph-kept-alive",
    title="Memory grows from step to step",
    fix=FixKind.SAFE,
    find=find,
    group="training loop and memory",
)
