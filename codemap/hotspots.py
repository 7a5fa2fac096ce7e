"""Time per step of each function and module of the workspace, for code lenses."""

from __future__ import annotations

import numpy as np

from ..analyzer.findings import Hotspot
from ..analyzer.timeline.columns import distinct
from ..analyzer.timeline.model import Timeline
from ..analyzer.trace.model import DEVICE_CATEGORIES, NONE, Category, Int32Array, IntArray
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
    work = Work(timeline)
    found: dict[tuple[str, int, str], float] = {}
    trace = timeline.trace
    python = trace.rows(Category.PYTHON_FUNCTION)
    python = python[timeline.steps.are_steady(python)]
    for name in distinct(trace.name[python]).tolist():
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
    label = matched.here(label)
    found = locator.known.codes(matched.path).find(label.name, label.line)
    if found is None or found.code.name.startswith("<"):
        return None
    return matched.path, getattr(found.code.node, "lineno", found.code.first_line), found.code.qualname


class Work:
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
        self._trace = trace
        self._span_ns = int(trace.end_ns.max(initial=0) - trace.ts_ns.min(initial=0)) + 1
        self._at = self._position(trace.thread[at], trace.ts_ns[at])
        self._sum_ns = np.concatenate([[0], np.cumsum(weight_ns[order])])

    def us_in(self, rows: IntArray) -> float:
        """Work caused inside the given host ranges, in µs; a range inside another of them counts once."""
        trace = self._trace
        start = self._position(trace.thread[rows], trace.ts_ns[rows])
        order = np.argsort(start, kind="stable")
        start = start[order]
        end = start + trace.dur_ns[rows[order]]
        inside_ns = self._sum_ns[np.searchsorted(self._at, end)] - self._sum_ns[np.searchsorted(self._at, start)]
        total, reached = 0, 0
        for begin, over, inside in zip(start.tolist(), end.tolist(), inside_ns.tolist(), strict=True):
            if begin >= reached:
                total, reached = total + inside, over
        return total / 1000.0

    def _position(self, thread: Int32Array, moment_ns: IntArray) -> IntArray:
        """Threads end to end on one axis."""
        return thread.astype(np.int64) * self._span_ns + moment_ns


def _host_ops(timeline: Timeline) -> tuple[IntArray, IntArray]:
    """All host rows with the time that is each one's own: where there is no device, that is the work."""
    rows = timeline.trace.rows(Category.CPU_OP, Category.PYTHON_FUNCTION)
    return rows, timeline.tree.self_ns[rows]


def _device_work(timeline: Timeline) -> tuple[IntArray, IntArray]:
    rows = timeline.trace.rows(*DEVICE_CATEGORIES)
    return rows, timeline.trace.dur_ns[rows]
