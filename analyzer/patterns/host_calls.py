"""Calls of libraries on the host, by the function that makes them: what rules about such work share."""

from __future__ import annotations

import numpy as np

from ..timeline.edit import Edit, Scale
from ..timeline.model import Timeline
from ..timeline.python_work import by_execution, caller_of
from ..timeline.sites import group_by_site
from ..trace.model import NONE, IntArray
from .base import Occurrence


def of_one_function(timeline: Timeline, rows: IntArray) -> list[list[IntArray]]:
    """`rows` by the function that calls them, and in it by execution: a few small calls may add up to a large one."""
    executions = by_execution(timeline, rows)
    callers = caller_of(timeline, np.array([calls[0] for calls in executions], dtype=np.int64))
    by_frame: dict[int, list[IntArray]] = {}
    for calls, caller in zip(executions, callers.tolist(), strict=True):
        by_frame.setdefault(caller if caller != NONE else int(calls[0]), []).append(calls)
    sites = group_by_site(timeline, np.array(sorted(by_frame), dtype=np.int64))
    return [[calls for frame in site.tolist() for calls in by_frame[frame]] for site in sites]


def scaled(timeline: Timeline, calls: IntArray, left: float) -> Occurrence:
    """Calls of which a share of the time is left; the longest of them says where to look."""
    longest = int(calls[np.argmax(timeline.trace.dur_ns[calls])])
    return Occurrence(longest, Edit(scales=(Scale(calls, left),)), calls)
