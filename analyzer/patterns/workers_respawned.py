"""workers-respawned: every epoch ends the loader's worker processes and starts new ones.

Why it is slow: the training process forks (or spawns) each worker again, waits for the old ones to end, and then for
the first batch; with spawned workers that means an interpreter that imports everything anew.
Trace: inside the recording, `_shutdown_workers` and new processes started by the loader's iterator, at two starts of
epochs or more.
Edit: the starts and the shutdowns go. What the first batch takes stays, except that a spawned worker's first batch
takes no longer than the loader's other batches.
Gate: one start only (the first epoch has to start workers); loaders without workers; forked workers whose start is
small beside the epoch: by replay, over all steps recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import distinct, is_among, median
from ..timeline.edit import Edit, Scale, no_rows
from ..timeline.model import Timeline
from ..timeline.python_work import frames_named
from ..timeline.select import events_of, inside, outermost
from ..timeline.sites import group_by_site
from ..trace.model import NONE, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .loading import shutdowns, waits_for_workers

_START = re.compile(r"multiprocessing/process\.py\(\d+\): start$")
_ITERATOR = re.compile(r"torch/utils/data/dataloader\.py\(\d+\): _get_iterator$")
_SPAWNED = re.compile(r"multiprocessing/popen_(spawn_posix|spawn_win32|forkserver)\.py")
_LEAST_EPOCHS = 2


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per loop that starts a loader's workers again and again."""
    iterators = outermost(timeline, frames_named(timeline, _ITERATOR))
    starts = frames_named(timeline, _START) if len(iterators) >= _LEAST_EPOCHS else no_rows()
    owner = inside(timeline, starts, iterators)
    starts, owner = starts[owner != NONE], owner[owner != NONE]
    begun = iterators[distinct(owner)]
    for group in group_by_site(timeline, begun):
        if len(group) >= _LEAST_EPOCHS:
            yield _candidate(timeline, group, starts[is_among(iterators[owner], group)])


def _candidate(timeline: Timeline, iterators: IntArray, starts: IntArray) -> Candidate:
    trace = timeline.trace
    ends = _ends(timeline, iterators)
    waits = waits_for_workers(timeline)
    first_waits, usual_ns = _first_waits(timeline, iterators, waits)
    spawned = len(frames_named(timeline, _SPAWNED)) > 0
    occurrences: list[Occurrence] = []
    for number, iterator in enumerate(iterators.tolist()):
        gone = np.concatenate([starts[inside(timeline, starts, np.array([iterator])) != NONE], ends[number]])
        scales = ()
        wait = int(first_waits[number])
        if spawned and wait != NONE and trace.dur_ns[wait] > usual_ns:
            scales = (Scale(np.array([wait]), usual_ns / float(trace.dur_ns[wait])),)
        cost_rows = np.sort(np.concatenate([gone, [wait] if scales else []])).astype(np.int64)
        occurrences.append(Occurrence(iterator, Edit(scales=scales, removed_ops=gone), cost_rows))
    cost = np.concatenate([one.cost_rows for one in occurrences])
    per_epoch_us = float(trace.dur_ns[cost].sum()) / 1000 / len(iterators)
    return Candidate(
        what="each epoch starts the loader's workers anew",
        remedy="keeping the workers",
        occurrences=tuple(occurrences),
        evidence=(
            Evidence(
                "epochs", "epochs begun in the recording", float(len(iterators)), "", events_of(timeline, iterators)
            ),
            Evidence("workers", "workers started per epoch", len(starts) / len(iterators), ""),
            Evidence("start", "time of starting and ending them per epoch", round(per_epoch_us / 1000, 3), "ms"),
        ),
        is_periodic=True,
        probability=0.95,
    )


def _ends(timeline: Timeline, iterators: IntArray) -> list[IntArray]:
    """For each iterator the shutdowns since the one before it, on its thread."""
    trace = timeline.trace
    rows = outermost(timeline, shutdowns(timeline))
    found = []
    before = -1
    for iterator in iterators.tolist():
        is_between = (trace.ts_ns[rows] > before) & (trace.ts_ns[rows] < trace.ts_ns[iterator])
        found.append(rows[is_between & (trace.thread[rows] == trace.thread[iterator])])
        before = int(trace.ts_ns[iterator])
    return found


def _first_waits(timeline: Timeline, iterators: IntArray, waits: IntArray) -> tuple[IntArray, float]:
    """The first wait for a batch after each iterator was made (NONE if there is none), and how long the others take."""
    trace = timeline.trace
    at = np.searchsorted(trace.ts_ns[waits], trace.ts_ns[iterators])
    first = np.append(waits, NONE)[at]
    others = waits[~is_among(waits, first[first != NONE])]
    return first, median(trace.dur_ns[others]) if len(others) else np.inf


PATTERN = Pattern(
    code="TAP103",
    slug="workers-respawned",
    title="Loader workers restarted each epoch",
    fix=FixKind.SAFE,
    find=find,
    needs=("stack",),
    group="data and host",
    stage=Stage.HARDWARE,
)
