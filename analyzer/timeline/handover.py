"""Work that the main thread hands to a helper thread, such as the backward pass to the autograd engine's.

A trace does not record the handing over. It shows as a stretch in which the main thread begins and ends nothing while a
helper works: the helper starts from the main thread's position there, and the main thread goes on when it is done. A
helper that works beside a busy main thread only starts from it, and holds nobody up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..trace.model import BoolArray, IntArray, Trace
from .host_axis import HostAxis
from .model import CallTree

_SHORTEST_NS = 20_000
"""Stretches of the main thread shorter than this are ordinary work."""
_BUSY_SHARE = 0.5
"""A main thread waits for a helper that works for at least this share of the stretch."""
_CLOCK_TOLERANCE_NS = 5_000


@dataclass(frozen=True, slots=True)
class Handover:
    """Bursts of helper threads' work. Arrays have shape (bursts,), positions are on the host axis."""

    helper_start: IntArray
    helper_end: IntArray
    main_start: IntArray
    """Where the main thread stood when the burst began; where it began to wait, if it was waiting then."""
    lead_ns: IntArray
    """From there to the start of the burst."""
    main_end: IntArray
    joined: BoolArray
    """Whether the main thread waited for the end of the burst."""


def find_handovers(trace: Trace, tree: CallTree, axis: HostAxis, wait_start: IntArray, wait_end: IntArray) -> Handover:
    """All bursts of the helper threads' outermost events, by the stretch of the main thread in which they begin.

    `wait_start` and `wait_end` are the positions, in order, between which the host waited for the device.
    """
    host = np.flatnonzero(axis.row_start >= 0)
    lane = axis.lane_at(axis.row_start[host])
    main = host[lane == 0]
    roots = host[(lane > 0) & (tree.parent[host] < 0)]
    if not len(roots):
        return _nothing()
    roots = roots[np.argsort(axis.row_start[roots], kind="stable")]
    cuts = np.sort(np.concatenate([[0], axis.row_start[main], axis.row_end[main], [axis.span_ns - 1]]))
    lane = axis.lane_at(axis.row_start[roots])
    start, end = axis.row_start[roots] - lane * axis.span_ns, axis.row_end[roots] - lane * axis.span_ns
    stretch = np.clip(np.searchsorted(cuts, start, side="right") - 1, 0, len(cuts) - 2)
    first = np.flatnonzero((np.diff(stretch, prepend=-1) != 0) | (np.diff(lane, prepend=-1) != 0))
    burst_start, burst_end = start[first], np.maximum.reduceat(end, first)
    busy = np.add.reduceat(end - start, first)
    stretch_start, stretch_end = cuts[stretch[first]], cuts[stretch[first] + 1]
    length = stretch_end - stretch_start
    joined = (length >= _SHORTEST_NS) & (busy >= _BUSY_SHARE * length)
    joined &= burst_end <= stretch_end + _CLOCK_TOLERANCE_NS
    offset = lane[first] * axis.span_ns
    until = np.minimum(burst_end, stretch_end)
    # A main thread that already waits, for the device or for another helper, stands where that wait began.
    within = np.searchsorted(wait_start, burst_start, side="right") - 1
    waiting = (within >= 0) & (burst_start < np.append(wait_end, 0)[within])
    joined &= ~waiting
    waits_from = np.full(len(cuts), axis.span_ns)
    np.minimum.at(waits_from, stretch[first[joined]], burst_start[joined])
    main_start = np.minimum(burst_start, waits_from[stretch[first]])
    main_start[waiting] = wait_start[within[waiting]]
    return Handover(
        helper_start=offset + burst_start,
        helper_end=offset + until,
        main_start=main_start,
        lead_ns=burst_start - main_start,
        main_end=until,
        joined=joined,
    )


def _nothing() -> Handover:
    none = np.empty(0, dtype=np.int64)
    return Handover(none, none, none, none, none, none.astype(bool))
