"""Time per step of each function and module of the workspace, for code lenses."""

from __future__ import annotations

import numpy as np

from ..analyzer.findings import Hotspot
from ..analyzer.timeline.model import Timeline
from ..analyzer.trace.model import DEVICE_CATEGORIES, NONE, Category, IntArray
from .labels import Kind, parse_label
from .locate import Locator

_LEAST_PCT = 0.5
"""Share of the step below which a function is not worth a lens."""


def hotspots(timeline: Timeline, locator: Locator) -> tuple[Hotspot, ...]:
    """Functions and module classes by the time of the steady steps spent in them, most first.

    Time is the device's where there is one, else the host's. Backward work counts for the forward function that
    caused it. A function's time includes that of what it calls.
    """
    steps = timeline.steps.steady
    if not len(steps) or not timeline.step_us > 0:
        return ()
    work = _Work(timeline)
    found: dict[tuple[str, int, str], float] = {}
    trace = timeline.trace
    python = trace.rows(Category.PYTHON_FUNCTION)
    python = python[np.isin(timeline.steps.of[python], steps)]
    for name in np.unique(trace.name[python]):
        place = _place(trace.names[name], locator)
        if place is not None:
            rows = python[trace.name[python] == name]
            found[place] = found.get(place, 0.0) + work.us_in(rows) / len(steps)
    spots = [
        Hotspot(path, line, qualname, round(us, 3), round(100.0 * us / timeline.step_us, 2))
        for (path, line, qualname), us in found.items()
        if 100.0 * us / timeline.step_us >= _LEAST_PCT
    ]
    return tuple(sorted(spots, key=lambda spot: (-spot.us_per_step, spot.path, spot.line)))


def _place(name: str, locator: Locator) -> tuple[str, int, str] | None:
    """Path, `def` or `class` line and qualified name of a frame's function or a module's class."""
    label = parse_label(name)
    if label.kind is Kind.MODULE:
        return locator.class_place(label.name)
    if label.kind is not Kind.FRAME or (matched := locator.workspace_path(label)) is None:
        return None
    found = locator.known.codes(matched.path).find(label.name, label.line)
    if found is None or found.code.name.startswith("<"):
        return None
    return matched.path, getattr(found.code.node, "lineno", found.code.first_line), found.code.qualname


class _Work:
    """Prefix sums of work along each host thread, so that the work inside any range is one subtraction."""

    def __init__(self, timeline: Timeline) -> None:
        trace = timeline.trace
        rows, weight_ns = _host_ops(timeline) if timeline.is_cpu_only else _device_work(timeline)
        forward = timeline.forward_op[rows]
        at = np.where(forward != NONE, forward, rows if timeline.is_cpu_only else timeline.launches.op[rows])
        known = at != NONE
        at, weight_ns = at[known], weight_ns[known]
        order = np.lexsort((trace.ts_ns[at], trace.thread[at]))
        at = at[order]
        self._timeline = timeline
        self._thread = trace.thread[at]
        self._ts_ns = trace.ts_ns[at]
        self._sum_ns = np.concatenate([[0], np.cumsum(weight_ns[order])])

    def us_in(self, rows: IntArray) -> float:
        """Work caused inside the given host ranges, in µs; a range inside another of them counts once."""
        trace = self._timeline.trace
        total, reached, thread = 0, 0, NONE
        for row in rows[np.lexsort((trace.ts_ns[rows], trace.thread[rows]))]:
            start, end = int(trace.ts_ns[row]), int(trace.end_ns[row])
            if trace.thread[row] == thread and start < reached:
                continue
            thread, reached = int(trace.thread[row]), end
            total += int(self._sum_ns[self._position(thread, end)] - self._sum_ns[self._position(thread, start)])
        return total / 1000.0

    def _position(self, thread: int, ts_ns: int) -> int:
        first, last = np.searchsorted(self._thread, [thread, thread + 1])
        return int(first + np.searchsorted(self._ts_ns[first:last], ts_ns))


def _host_ops(timeline: Timeline) -> tuple[IntArray, IntArray]:
    """All host rows with the time that is each one's own: where there is no device, that is the work."""
    rows = timeline.trace.rows(Category.CPU_OP, Category.PYTHON_FUNCTION)
    return rows, timeline.tree.self_ns[rows]


def _device_work(timeline: Timeline) -> tuple[IntArray, IntArray]:
    rows = timeline.trace.rows(*DEVICE_CATEGORIES)
    return rows, timeline.trace.dur_ns[rows]
