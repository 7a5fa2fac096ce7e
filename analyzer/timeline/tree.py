"""Which host event encloses which: one call tree per thread, found by containment."""

from __future__ import annotations

import numpy as np

from ..trace.model import HOST_CATEGORIES, NONE, BoolArray, Category, Int8Array, Int32Array, IntArray, Trace
from .model import CallTree

STEP_PREFIX = "ProfilerStep#"

_RANK = np.full(max(Category) + 1, 9, dtype=np.int8)
"""Which of two events with the same start and end is the outer one: lowest rank first, then file order."""
_RANK[[Category.USER_ANNOTATION, Category.PYTHON_FUNCTION, Category.CPU_OP, Category.RUNTIME]] = (0, 0, 1, 2)


def build_tree(trace: Trace) -> CallTree:
    """Nest the host events of each thread.

    An event belongs to the innermost earlier event of its thread that is still running at its midpoint. Where
    intervals nest, that is containment; where clocks round or a child ends after its parent, it is the sensible answer.
    """
    size = len(trace)
    rows = trace.rows(*HOST_CATEGORIES)
    parent = np.full(size, NONE, dtype=np.int32)
    parent[rows] = _parents(trace, rows)
    _follow_python_parents(trace, parent)
    # Only the part of a child inside its parent is taken off the parent's own time.
    child = np.flatnonzero(parent >= 0)
    inside_ns = np.minimum(trace.end_ns[child], trace.end_ns[parent[child]]) - trace.ts_ns[child]
    self_ns = np.zeros(size, dtype=np.int64)
    self_ns[rows] = trace.dur_ns[rows]
    self_ns -= np.bincount(parent[child], weights=inside_ns, minlength=size).astype(np.int64)
    child_rows = child[np.argsort(parent[child], kind="stable")].astype(np.int32)
    child_start = np.zeros(size + 1, dtype=np.int32)
    np.cumsum(np.bincount(parent[child], minlength=size), out=child_start[1:])
    return CallTree(
        parent=parent,
        op=enclosing(parent, trace.cat == Category.CPU_OP),
        python=enclosing(parent, trace.cat == Category.PYTHON_FUNCTION),
        annotation=enclosing(parent, (trace.cat == Category.USER_ANNOTATION) & ~is_step_mark(trace)),
        self_ns=np.maximum(self_ns, 0),
        child_start=child_start,
        child_rows=child_rows,
    )


def is_step_mark(trace: Trace) -> BoolArray:
    """Shape (n,): the host's `ProfilerStep#N` ranges."""
    marks = named(trace, *(name for name in trace.names if name.startswith(STEP_PREFIX)))
    return marks & ((trace.cat == Category.USER_ANNOTATION) | (trace.cat == Category.CPU_OP))


def named(trace: Trace, *names: str) -> BoolArray:
    """Shape (n,): events called exactly one of `names`."""
    wanted = frozenset(names)
    return np.array([name in wanted for name in trace.names], dtype=bool)[trace.name]


def enclosing(parent: Int32Array, wanted: BoolArray) -> Int32Array:
    """Shape (n,): the innermost ancestor-or-self of each row that is `wanted`; NONE if there is none.

    `parent` is a forest over rows, NONE at roots. Pointer doubling: each pass halves the way that is left.
    """
    size = len(parent)
    if not wanted.any():
        return np.full(size, NONE, dtype=np.int32)
    jump = np.append(np.where(wanted, np.arange(size, dtype=np.int32), parent), NONE)
    settled = np.append(wanted, True)
    open_rows = np.flatnonzero(~settled[jump])
    while len(open_rows):
        jump[open_rows] = jump[jump[open_rows]]
        open_rows = open_rows[~settled[jump[open_rows]]]
    return jump[:size]


def _parents(trace: Trace, rows: IntArray) -> Int32Array:
    """The parent row of each of `rows`.

    For each event the candidate is the previous one in (thread, start, -end) order; a candidate that ended before the
    event's midpoint is replaced by its own candidate, all events at once, until nothing changes. Skipping is sound:
    whatever lies between a candidate and its own candidate ended before the candidate did.
    """
    thread, start, duration = _lanes(trace)[rows], trace.ts_ns[rows], trace.dur_ns[rows]
    order = _outer_first(thread, start, duration, _RANK[trace.cat[rows]])
    thread, start, duration = thread[order], start[order], duration[order]
    end, middle = start + duration, start + duration // 2
    is_first = np.diff(thread, prepend=-1) != 0
    candidate = np.where(is_first, NONE, np.arange(-1, len(rows) - 1))
    pending = np.flatnonzero(~is_first)
    while len(pending):
        tried = candidate[pending]
        over = end[tried] <= middle[pending]
        pending = pending[over]
        candidate[pending] = candidate[tried[over]]
        pending = pending[candidate[pending] >= 0]
    sorted_rows = rows[order]
    parents = np.empty(len(rows), dtype=np.int32)
    parents[order] = np.where(candidate >= 0, sorted_rows[candidate], NONE)
    return parents


def _follow_python_parents(trace: Trace, parent: Int32Array) -> None:
    """Where the frame that a Python frame names as its parent still runs but is not round it, put it there, in place.

    A range that opens inside a frame and outlives it (`record_function.__enter__`) takes the frame's later calls for
    its own by containment.
    """
    frames = np.flatnonzero((trace.cat == Category.PYTHON_FUNCTION) & (parent >= 0) & (trace.python_parent >= 0))
    named = _frames_by_id(trace, trace.python_parent[frames])
    middle = trace.ts_ns[frames] + trace.dur_ns[frames] // 2
    is_running = (named >= 0) & (trace.ts_ns[named] < trace.ts_ns[frames]) & (trace.end_ns[named] > middle)
    frames, named = frames[is_running], named[is_running]
    above = parent[frames].copy()
    pending = np.flatnonzero(above != named)
    while len(pending):
        above[pending] = np.append(parent, NONE)[above[pending]]
        pending = pending[(above[pending] != named[pending]) & (above[pending] >= 0)]
    stray = (above < 0) & (trace.thread[frames] == trace.thread[named])
    parent[frames[stray]] = named[stray]


def _frames_by_id(trace: Trace, ids: IntArray) -> IntArray:
    """The row of the Python frame with each id; NONE where there is none."""
    rows = np.flatnonzero((trace.cat == Category.PYTHON_FUNCTION) & (trace.python_id >= 0))
    if not len(rows):
        return np.full(len(ids), NONE, dtype=np.int64)
    rows = rows[np.argsort(trace.python_id[rows], kind="stable")]
    place = np.minimum(np.searchsorted(trace.python_id[rows], ids), len(rows) - 1)
    return np.where(trace.python_id[rows[place]] == ids, rows[place], NONE)


def _outer_first(thread: Int32Array, start: IntArray, duration: IntArray, rank: Int8Array) -> IntArray:
    """Positions in order of (thread, start, -duration, rank), given that they come in order of (start, -duration)."""
    differs = (np.diff(start, prepend=-1) != 0) | (np.diff(duration, prepend=-1) != 0)
    place = np.cumsum(differs)
    # One key sorts several times faster than four.
    key = (thread.astype(np.int64) * (len(start) + 1) + place) * (int(_RANK.max()) + 1) + rank
    return np.argsort(key, kind="stable")


def _lanes(trace: Trace) -> Int32Array:
    """The thread of each event, python frames of an unknown thread moved to the thread they ran on.

    Some profilers write python frames under a thread id of their own (0, or Python's). Such a thread holds frames
    only; it is the thread whose operators its frames enclose, if exactly one lies wholly within the frames' span.
    """
    count = len(trace.threads)
    is_python = trace.cat == Category.PYTHON_FUNCTION
    has_python = np.bincount(trace.thread[is_python], minlength=count) > 0
    is_work = (trace.cat == Category.CPU_OP) | (trace.cat == Category.RUNTIME)
    has_work = np.bincount(trace.thread[is_work], minlength=count) > 0
    strays = np.flatnonzero(has_python & ~has_work)
    if not len(strays):
        return trace.thread
    lane = np.arange(count, dtype=np.int32)
    homes = np.flatnonzero(has_work & ~has_python)
    for stray in strays:
        frames = is_python & (trace.thread == stray)
        start, end = trace.ts_ns[frames].min(), trace.end_ns[frames].max()
        inside = [
            home
            for home in homes
            if trace.ts_ns[is_work & (trace.thread == home)].min() >= start
            and trace.end_ns[is_work & (trace.thread == home)].max() <= end
        ]
        if len(inside) == 1:
            lane[stray] = inside[0]
    return lane[trace.thread]
