"""What the recording shows of loaders with worker processes, for the rules about them."""

from __future__ import annotations

import re

import numpy as np

from ..timeline.columns import distinct, is_among, median
from ..timeline.edit import no_rows
from ..timeline.model import Timeline
from ..timeline.python_work import frames_named
from ..timeline.select import inside, outermost, steady, us_per_step
from ..timeline.sites import group_by_site
from ..trace.model import NONE, Category, IntArray

WAIT = "_MultiProcessingDataLoaderIter.__next__"
"""In the annotation round every batch that is taken from workers."""
TAKEOVER_NS = 1_000_000
"""To take over a batch that is ready: a queue read, shared memory mapped, tensors rebuilt. Measured with torch 2.13."""
LEAST_SHARE = 0.05
"""Of the steps, below which the waits for a loader are nothing to speak of."""
_LEAST_STEPS = 2
_GET = re.compile(r"torch/utils/data/dataloader\.py\(\d+\): _get_data$")
_ITERATOR = re.compile(r"torch/utils/data/dataloader\.py\(\d+\): _get_iterator$")
_REBUILD = re.compile(r"torch/multiprocessing/reductions\.py\(\d+\): rebuild_storage_\w+$")
_UNPICKLE = re.compile(r"^<built-in function loads>$")
_SHUTDOWN = re.compile(r"torch/utils/data/dataloader\.py\(\d+\): _shutdown_workers$")


def waits_for_workers(timeline: Timeline) -> IntArray:
    """The waits for batches from workers in the steady steps, less those that only found the epoch over."""
    trace = timeline.trace
    ids = [number for number, name in enumerate(trace.names) if WAIT in name]
    if ids:
        rows = np.flatnonzero(is_among(trace.name, ids) & (trace.cat == Category.USER_ANNOTATION))
        rows = outermost(timeline, steady(timeline, rows))
    else:
        rows = outermost(timeline, frames_named(timeline, _GET))
    ends = inside(timeline, shutdowns(timeline), rows)
    return rows[~np.isin(np.arange(len(rows)), ends[ends != NONE])] if len(rows) else no_rows()


def rebuilt_storages(timeline: Timeline) -> IntArray:
    """The calls that map one tensor's shared memory each, in the thread that takes batches from workers."""
    return outermost(timeline, frames_named(timeline, _REBUILD))


def unpicklings(timeline: Timeline) -> IntArray:
    """The calls that make batches of what came from workers: for them more workers are no remedy."""
    return outermost(timeline, frames_named(timeline, _UNPICKLE))


def shutdowns(timeline: Timeline) -> IntArray:
    """The calls that end workers, where stacks were recorded."""
    return frames_named(timeline, _SHUTDOWN)


def starved_waits(timeline: Timeline) -> list[IntArray]:
    """Waits for workers by site, where they add up to something: 5 % of all steps, in two of them or more.

    The first batch of an epoch is left out: it waits for the workers to start (see workers-respawned).
    """
    trace, steps = timeline.trace, timeline.steps
    waits = waits_for_workers(timeline)
    if not len(waits):
        return []
    begun = frames_named(timeline, _ITERATOR)
    first = np.searchsorted(trace.ts_ns[waits], trace.ts_ns[begun])
    waits = waits[~np.isin(np.arange(len(waits)), first)]
    total_ns = float(steps.duration_ns[steps.steady].sum())
    found = []
    for rows in group_by_site(timeline, waits):
        long = rows[trace.dur_ns[rows] > LEAST_SHARE * median(steps.duration_ns[steps.steady])]
        if len(distinct(steps.of[long])) >= _LEAST_STEPS and trace.dur_ns[rows].sum() > LEAST_SHARE * total_ns:
            found.append(rows)
    return found


def come_in_bursts(timeline: Timeline, waits: IntArray) -> bool:
    """Whether most of the waiting is done in less than half of the steps: several workers finish together."""
    mean_us = float(timeline.trace.dur_ns[waits].sum()) / 1000 / max(len(timeline.steps.steady), 1)
    return us_per_step(timeline, waits) < mean_us / 2
