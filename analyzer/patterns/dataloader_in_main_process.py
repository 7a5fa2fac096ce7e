"""dataloader-in-main-process: samples are read and transformed in the training process, and the step waits for them.

Why it is slow: with `num_workers=0`, every `next()` of the loader runs the data set and the collation itself, while
the device, or the model on the CPU, has nothing to do.
Trace: `enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__`, or, where annotations are missing, the fetch
frame of `torch/utils/data/_utils/fetch.py` on the thread that runs the step.
Edit: the loading runs beside the step, in workers, and costs only what exceeds the rest of the step.
Gate: batches that take less than a millisecond: a worker's batch costs the main process about half of that itself (a
queue read and the mapping of shared memory), so nothing would be gained.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.edit import Edit
from ..timeline.model import Timeline
from ..timeline.select import count_per_step, events_of, in_typical_step, outermost, steady
from ..timeline.sites import group_by_site
from ..trace.model import IntArray
from .base import Candidate, FixKind, Occurrence, Pattern

_WORTHWHILE_NS = 1_000_000
_ANNOTATION = "_SingleProcessDataLoaderIter.__next__"
_FETCH_FRAME = "torch/utils/data/_utils/fetch.py("


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per loader whose batches are made in the main process."""
    fetches = _named(timeline, _ANNOTATION)
    if not len(fetches):
        fetches = _named(timeline, _FETCH_FRAME)
    fetches = fetches[timeline.trace.dur_ns[fetches] >= _WORTHWHILE_NS]
    for rows in group_by_site(timeline, fetches):
        yield Candidate(
            what="batches are loaded in the main process",
            remedy="loading in worker processes",
            occurrences=tuple(
                Occurrence(anchor=row, edit=Edit(overlapped=np.array([row])), cost_rows=np.array([row]))
                for row in rows.tolist()
            ),
            evidence=(
                Evidence(
                    "batch",
                    "time to load one batch",
                    round(float(np.median(timeline.trace.dur_ns[rows])) / 1e6, 3),
                    "ms",
                    events_of(timeline, in_typical_step(timeline, rows)),
                ),
                Evidence("batches", "batches loaded per step", count_per_step(timeline, rows), ""),
            ),
        )


def _named(timeline: Timeline, part: str) -> IntArray:
    trace = timeline.trace
    ids = [i for i, name in enumerate(trace.names) if part in name]
    if not ids:
        return np.empty(0, dtype=np.int64)
    return outermost(timeline, steady(timeline, np.flatnonzero(np.isin(trace.name, ids) & (trace.stream < 0))))


PATTERN = Pattern(
    code="TAP101",
    slug="dataloader-in-main-process",
    title="Data loader in the main process",
    fix=FixKind.SAFE,
    find=find,
    group="data and host",
)
