"""What the thread that runs the steps does at a moment."""

from __future__ import annotations

from ..trace.model import HOST_CATEGORIES
from .model import Timeline


def innermost_at(timeline: Timeline, moment_ns: int) -> int:
    """The innermost host event at a moment, on the thread whose event then is the longest: that of the step's mark.

    There must be one; in a step there is.
    """
    trace = timeline.trace
    hosts = trace.rows(*HOST_CATEGORIES)
    lasting = hosts[(trace.ts_ns[hosts] <= moment_ns) & (trace.end_ns[hosts] >= moment_ns)]
    main = trace.thread[lasting[trace.dur_ns[lasting].argmax()]]
    return int(lasting[trace.thread[lasting] == main][-1])
