"""dataloader-in-main-process: samples are read and transformed in the training process, and the step waits for them.

Why it is slow: with `num_workers=0`, every `next()` of the loader runs the data set and the collation itself, while
the device, or the model on the CPU, has nothing to do.
Trace: `enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__`, or, where annotations are missing, the fetch
frame of `torch/utils/data/_utils/fetch.py` on the thread that runs the step.
Edit: the loading runs beside the step, in workers, and costs only what exceeds the rest of the step. What remains is
taking a batch over. Measured with torch 2.13: 1 ms (a queue read, shared memory mapped, samples unpickled) and, where
the model reads the batch from that memory on the CPU, about 0.45 ms per MB for its pages: twice what stacking the
samples takes.
Gate: loaders that take under 5 % of the step; batches that would cost as much to take over as to load (small sets in
memory).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import is_among, median
from ..timeline.edit import Edit
from ..timeline.model import Timeline
from ..timeline.select import (
    count_per_step,
    events_of,
    in_typical_step,
    inside,
    is_noticeable,
    ops_named,
    outermost,
    steady,
)
from ..timeline.sites import group_by_site
from ..trace.model import NONE, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern

_NOTICEABLE_SHARE = 0.05
_TAKEOVER_NS = 1_000_000
_TAKEOVER_STACKS = 2.0
"""Time to take a batch over on the CPU, beyond the fixed part, over the time to stack its samples."""
_STACKING = ("aten::stack", "aten::cat")
_ANNOTATION = "_SingleProcessDataLoaderIter.__next__"
_FETCH_FRAME = "torch/utils/data/_utils/fetch.py("


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per loader whose batches are made in the main process."""
    fetches = _named(timeline, _ANNOTATION)
    if not len(fetches):
        fetches = _named(timeline, _FETCH_FRAME)
    for rows in group_by_site(timeline, fetches):
        kept = _kept_share(timeline, rows)
        if kept >= 1.0 or not is_noticeable(timeline, rows, _NOTICEABLE_SHARE):
            continue
        yield Candidate(
            what="batches are loaded in the main process",
            remedy="loading in worker processes",
            occurrences=tuple(
                Occurrence(
                    anchor=row, edit=Edit(overlapped=np.array([row]), kept_share=kept), cost_rows=np.array([row])
                )
                for row in rows.tolist()
            ),
            evidence=(
                Evidence(
                    "batch",
                    "time to load one batch",
                    round(median(timeline.trace.dur_ns[rows]) / 1e6, 3),
                    "ms",
                    events_of(timeline, in_typical_step(timeline, rows)),
                ),
                Evidence("batches", "batches loaded per step", count_per_step(timeline, rows), ""),
            ),
        )


def _kept_share(timeline: Timeline, fetches: IntArray) -> float:
    """Share of the loading time that taking the batches over from workers would cost."""
    dur_ns = timeline.trace.dur_ns
    loading_ns, takeover_ns = median(dur_ns[fetches]), float(_TAKEOVER_NS)
    if timeline.is_cpu_only:
        stacks = ops_named(timeline, _STACKING)
        owner = inside(timeline, stacks, fetches)
        stacks, owner = stacks[owner != NONE], owner[owner != NONE]
        per_fetch = np.bincount(owner, weights=dur_ns[stacks], minlength=len(fetches))
        takeover_ns += _TAKEOVER_STACKS * median(per_fetch)
    return takeover_ns / max(loading_ns, 1.0)


def _named(timeline: Timeline, part: str) -> IntArray:
    trace = timeline.trace
    ids = [i for i, name in enumerate(trace.names) if part in name]
    if not ids:
        return np.empty(0, dtype=np.int64)
    return outermost(timeline, steady(timeline, np.flatnonzero(is_among(trace.name, ids) & (trace.stream < 0))))


PATTERN = Pattern(
    code="TAP101",
    slug="dataloader-in-main-process",
    title="Data loader in the main process",
    fix=FixKind.SAFE,
    find=find,
    group="data and host",
    stage=Stage.IMPLEMENTATION,
)
