"""Short gaps in which the device waits for the host's launches: what the rules on launch-bound steps share."""

from __future__ import annotations

import numpy as np

from ..timeline.columns import median
from ..timeline.model import IdleCause, Timeline
from ..trace.model import NONE, IntArray

LONGEST_LAUNCH_GAP_NS = 500_000
"""Longer gaps are loading, decoding or a cold start, not launches."""
LEAST_IDLE_SHARE = 0.1
"""Share of the step, in such gaps, from which it is bound by launches."""
GRAPH_HOST_FACTOR = 0.15
"""Host time that is left when a graph is launched: guards, copies of the inputs, one call."""


def late_host_us(timeline: Timeline, longest_ns: float, before: IntArray | None = None) -> float:
    """Idle time per steady step, in µs, in gaps of at most that length for which the late host is to blame.

    With `before`, only in the gaps that end with one of these kernels.
    """
    idle = timeline.idle
    length = idle.end_ns - idle.start_ns
    counts = (idle.cause == IdleCause.HOST_BOUND) & (length <= longest_ns) & (idle.step != NONE)
    if before is not None:
        counts &= np.isin(idle.before, before)
    sums = np.bincount(idle.step[counts], weights=length[counts], minlength=len(timeline.steps))
    return median(sums[timeline.steps.steady]) / 1e3
