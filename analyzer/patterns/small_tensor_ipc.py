"""small-tensor-ipc: a batch comes from the loader's workers as many small tensors.

Why it is slow: every tensor that crosses from a worker has shared memory and a file descriptor of its own, which is
asked for over a socket, received and mapped, whatever its size. A hundred tensors of a few bytes cost more than one of
a hundred megabytes.
Trace: `rebuild_storage_fd` of `torch/multiprocessing/reductions.py` sixteen times a batch or more, in the thread that
takes batches over or in the one that pins them; without stacks, waits for the workers.
Edit: of these calls eight a batch are left: the images, and one tensor for each field of the targets. Where a thread of
its own pins batches, the waits become shorter by what it saves; without stacks, by a fifth (a report measured 1.25 to
1.67 times the batches).
Gate: batches of a few tensors; calls under 2 % of the step; without stacks, code whose collate function does not return
lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.edit import Edit, Scale
from ..timeline.model import Timeline
from ..timeline.select import count_per_step, events_of, in_typical_step, inside, is_noticeable
from ..timeline.sites import group_by_site
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .loading import rebuilt_storages, starved_waits, waits_for_workers

_LEAST_PER_BATCH = 16
_LEFT_PER_BATCH = 8
_NOTICEABLE_SHARE = 0.02
_LEFT_UNSEEN = 0.8


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per loop whose batches have many tensors."""
    waits = waits_for_workers(timeline)
    if not len(waits):
        return
    storages = rebuilt_storages(timeline)
    owner = inside(timeline, storages, waits)
    if (owner != NONE).any():
        yield from _taken_over_here(timeline, waits, storages, owner)
    elif len(storages) >= _LEAST_PER_BATCH * len(waits):
        yield from _pinned_elsewhere(timeline, storages)
    elif not len(timeline.trace.rows(Category.PYTHON_FUNCTION)):
        for rows in starved_waits(timeline):
            unseen = _candidate(timeline, rows, _scaled(rows, _LEFT_UNSEEN), (), probability=0.6)
            yield replace(unseen, needs_source=True)


def _taken_over_here(timeline: Timeline, waits: IntArray, storages: IntArray, owner: IntArray) -> Iterator[Candidate]:
    for rows in group_by_site(timeline, waits):
        at = np.searchsorted(waits, rows)
        mine = [storages[owner == number] for number in at.tolist()]
        all_mine = np.sort(np.concatenate(mine))
        per_batch = len(all_mine) / len(rows)
        if per_batch < _LEAST_PER_BATCH or not is_noticeable(timeline, all_mine, _NOTICEABLE_SHARE):
            continue
        left = _LEFT_PER_BATCH / per_batch
        edits = [Edit(scales=(Scale(one, left),)) for one in mine]
        occurrences = tuple(
            Occurrence(row, edit, one) for row, edit, one in zip(rows.tolist(), edits, mine, strict=True) if len(one)
        )
        yield _candidate(timeline, rows, occurrences, _evidence(timeline, all_mine, len(rows)), probability=0.9)


def _pinned_elsewhere(timeline: Timeline, storages: IntArray) -> Iterator[Candidate]:
    """The waits for a thread that takes the batches over and pins them."""
    dur_ns = timeline.trace.dur_ns
    for rows in starved_waits(timeline):
        saved_ns = float(dur_ns[storages].sum()) * (1 - _LEFT_PER_BATCH * len(rows) / len(storages))
        left = max(1 - saved_ns / float(dur_ns[rows].sum()), 0.0)
        evidence = _evidence(timeline, storages, len(rows))
        yield _candidate(timeline, rows, _scaled(rows, left), evidence, probability=0.8)


def _scaled(rows: IntArray, left: float) -> tuple[Occurrence, ...]:
    return tuple(
        Occurrence(row, Edit(scales=(Scale(np.array([row]), left),)), np.array([row])) for row in rows.tolist()
    )


def _evidence(timeline: Timeline, storages: IntArray, batches: int) -> tuple[Evidence, ...]:
    return (
        Evidence(
            "tensors",
            "tensors per batch",
            round(len(storages) / batches, 1),
            "",
            events_of(timeline, in_typical_step(timeline, storages)),
        ),
        Evidence("each", "time to map one", round(float(np.mean(timeline.trace.dur_ns[storages])) / 1000, 1), "µs"),
    )


def _candidate(
    timeline: Timeline,
    waits: IntArray,
    occurrences: tuple[Occurrence, ...],
    evidence: tuple[Evidence, ...],
    *,
    probability: float,
) -> Candidate:
    return Candidate(
        what="a batch comes from the workers as many small tensors",
        remedy="one tensor for each field",
        occurrences=occurrences,
        evidence=(*evidence, Evidence("batches", "batches per step", count_per_step(timeline, waits), "")),
        probability=probability,
    )


PATTERN = Pattern(
    code="TAP108",
    slug="small-tensor-ipc",
    title="Many small tensors from loader workers",
    fix=FixKind.UNSAFE,
    find=find,
    group="data and host",
    stage=Stage.IMPLEMENTATION,
)
