"""What the recording shows of loaders with worker processes, for the rules about them."""

from __future__ import annotations

import re

import numpy as np

from ..timeline.columns import is_among
from ..timeline.edit import no_rows
from ..timeline.model import Timeline
from ..timeline.python_work import frames_named
from ..timeline.select import inside, outermost, steady
from ..trace.model import NONE, Category, IntArray

WAIT = "_MultiProcessingDataLoaderIter.__next__"
"""In the annotation round every batch that is taken from workers."""
TAKEOVER_NS = 1_000_000
"""To take over a batch that is ready: a queue read, shared memory mapped, tensors rebuilt. Measured with torch 2.13."""
_GET = re.compile(r"torch/utils/data/dataloader\.py\(\d+\): _get_data$")
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


def shutdowns(timeline: Timeline) -> IntArray:
    """The calls that end workers, where stacks were recorded."""
    return frames_named(timeline, _SHUTDOWN)
