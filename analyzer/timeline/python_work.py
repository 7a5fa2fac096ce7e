"""Python frames by name, and how long the host spends in them: what rules about host work ask."""

from __future__ import annotations

import re

import numpy as np

from ..trace.model import NONE, Category, IntArray
from .columns import is_among
from .edit import no_rows
from .model import Timeline
from .select import steady


def frames_named(timeline: Timeline, wanted: re.Pattern[str]) -> IntArray:
    """Python frames and built-in calls of the steady steps whose name `wanted` finds."""
    trace = timeline.trace
    ids = [number for number, name in enumerate(trace.names) if wanted.search(name)]
    if not ids:
        return no_rows()
    is_frame = is_among(trace.name, ids) & (trace.cat == Category.PYTHON_FUNCTION)
    return steady(timeline, np.flatnonzero(is_frame))


def caller_of(timeline: Timeline, rows: IntArray) -> IntArray:
    """For each of `rows` (host events), the Python frame that it was called from; NONE if there is none."""
    tree = timeline.tree
    parent = tree.parent[rows]
    return np.where(parent == NONE, NONE, tree.python[np.maximum(parent, 0)]).astype(np.int64)


def by_execution(timeline: Timeline, rows: IntArray) -> list[IntArray]:
    """`rows` (host events) parted by the execution of the function that calls them, and by step where that runs on.

    Rows that no frame calls stand alone.
    """
    callers, steps = caller_of(timeline, rows), timeline.steps.of[rows]
    groups: dict[tuple[int, int], list[int]] = {}
    for row, caller, step in zip(rows.tolist(), callers.tolist(), steps.tolist(), strict=True):
        groups.setdefault((caller, step) if caller != NONE else (NONE, -row), []).append(row)
    return [np.array(group, dtype=np.int64) for group in groups.values()]


def is_within_step(timeline: Timeline, rows: IntArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For each of `rows`, whether it begins and ends inside its step: a training loop's own frame does not."""
    trace, steps = timeline.trace, timeline.steps
    of = steps.of[rows]
    start, end = trace.ts_ns[rows], trace.ts_ns[rows] + trace.dur_ns[rows]
    return (of != NONE) & (start >= steps.start_ns[of]) & (end <= steps.end_ns[of])
