"""Which windows a fault has spoiled, and by how much.

An event is spoiled by a kind if it lies in one of the kind's ranges, if it is a backward operator whose forward
operator is spoiled, if the fault's `spoils` says so, or if a spoiled host event launched it. Of idle time is spoiled: a
wait whose call or loader is spoiled; the part of a late launch in which the host was busy with what is spoiled; a gap
of the device before work that is spoiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from torchtraceap.analyzer.detector.model import Windows
from torchtraceap.analyzer.timeline.columns import is_among
from torchtraceap.analyzer.timeline.intervals import Spans, covered_ns, intersection, joined, union
from torchtraceap.analyzer.timeline.model import Idle, IdleCause, Timeline
from torchtraceap.analyzer.timeline.tree import enclosing
from torchtraceap.analyzer.trace.model import HOST_CATEGORIES, NONE, BoolArray, FloatArray, Int32Array, IntArray

from .cleaning import Spoiled

_BLAMED = (IdleCause.DATA, IdleCause.SYNC, IdleCause.COMMUNICATION)
"""Causes of idle time whose time belongs to the call that waits, not to the work that comes next."""
Rule = Callable[[Timeline], BoolArray]
"""Which events a setting spoils: `Fault.spoils`."""


@dataclass(frozen=True, slots=True)
class Spoilage:
    """All that one kind has spoiled in a trace."""

    host: Spans
    """Host time, any thread."""
    device: IntArray
    """Device work, as positions in the file (`Trace.file_index`), in order."""
    idle: Spans
    """Idle time of the device."""


@dataclass(frozen=True, slots=True)
class Labels:
    """Of windows."""

    share: FloatArray
    """Shape (windows, kinds): how much of the window's time each kind has spoiled, 0 to 1."""
    cost: FloatArray
    """Shape (windows,): the window's part of the time of its step's windows, 0 to 1."""


def find_spoilage(
    timeline: Timeline,
    ranges: Iterable[Spoiled],
    rules: Mapping[str, Rule | None],
    facts: Mapping[str, Rule] | None = None,
) -> dict[str, Spoilage]:
    """What each of the kinds has spoiled: those of `rules`, which were injected, and those of `facts`, which any run
    may show; what is injected counts for itself only."""
    nothing = np.zeros(len(timeline.trace), dtype=np.bool_)
    ranges, others, found = tuple(ranges), nothing.copy(), {}
    for slug, spoils in rules.items():
        by_rule = spoils(timeline) if spoils is not None else nothing
        its = [part for part in ranges if part.slug == slug]
        is_spoiled = _grown(timeline, _in_ranges(timeline, its) | by_rule)
        found[slug] = _spoilage(timeline, its, is_spoiled, by_rule)
        others |= is_spoiled
    for slug, tells in (facts or {}).items():
        by_rule = tells(timeline) & ~others
        found[slug] = _spoilage(timeline, [], _grown(timeline, by_rule) & ~others, by_rule)
    return found


def label_windows(timeline: Timeline, windows: Windows, spoilage: Sequence[Spoilage]) -> Labels:
    """Label the windows of the timeline that `spoilage` was found in, or of one of the same run with less in it."""
    if timeline.is_cpu_only:
        time_ns = (windows.end_ns - windows.start_ns).astype(np.float64)
        spoiled = [covered_ns(kind.host, windows.start_ns, windows.end_ns) for kind in spoilage]
    else:
        time_ns = _device_time(timeline, windows, np.ones(len(timeline.trace), dtype=np.bool_), None)
        file_index = timeline.trace.file_index
        spoiled = [_device_time(timeline, windows, np.isin(file_index, kind.device), kind.idle) for kind in spoilage]
    share = np.stack(spoiled, axis=1) if spoiled else np.zeros((len(windows), 0))
    step_ns = np.bincount(windows.step, weights=time_ns, minlength=1)[windows.step]
    return Labels(np.clip(share / np.maximum(time_ns, 1.0)[:, None], 0.0, 1.0), time_ns / np.maximum(step_ns, 1.0))


def _grown(timeline: Timeline, is_spoiled: BoolArray) -> BoolArray:
    """With what is called there, its backward pass, and the device work that those launched."""
    grown = enclosing(timeline.tree.parent, is_spoiled) != NONE
    grown |= np.append(grown, False)[timeline.forward_op]
    device, grown_or_none = timeline.device_rows, np.append(grown, False)
    grown[device] |= grown_or_none[timeline.launches.op[device]] | grown_or_none[timeline.launches.runtime[device]]
    return grown | is_spoiled


def _spoilage(timeline: Timeline, ranges: list[Spoiled], is_spoiled: BoolArray, by_rule: BoolArray) -> Spoilage:
    trace, device = timeline.trace, timeline.device_rows
    rows = np.flatnonzero(is_spoiled & is_among(trace.cat, HOST_CATEGORIES))
    host = union(
        np.append(trace.ts_ns[rows], np.array([part.start_ns for part in ranges], dtype=np.int64)),
        np.append(trace.end_ns[rows], np.array([part.end_ns for part in ranges], dtype=np.int64)),
    )
    spoiled_device = np.sort(trace.file_index[device[is_spoiled[device]]])
    return Spoilage(host, spoiled_device, _idle(timeline.idle, is_spoiled, by_rule, host))


def _in_ranges(timeline: Timeline, ranges: list[Spoiled]) -> BoolArray:
    """Which host events lie in one of the ranges, on its thread."""
    trace = timeline.trace
    found = np.zeros(len(trace), dtype=np.bool_)
    for number, thread in enumerate(trace.threads):
        its = [part for part in ranges if (part.pid, part.tid) == (str(thread.pid), str(thread.tid))]
        if its:
            spans = union(*np.array([(part.start_ns, part.end_ns) for part in its], dtype=np.int64).T)
            rows = np.flatnonzero(trace.thread == number)
            at = np.searchsorted(spans.start_ns, trace.ts_ns[rows], side="right") - 1
            found[rows[(at >= 0) & (trace.end_ns[rows] <= spans.end_ns[at])]] = True
    return found


def _idle(idle: Idle, is_spoiled: BoolArray, by_rule: BoolArray, host: Spans) -> Spans:
    """Idle time that is spoiled. Where the host came late, the rule may blame the launch itself; else what it did
    meanwhile counts."""
    by_host, by_next = (np.append(is_spoiled, False)[rows] for rows in (idle.host, idle.before))
    late = idle.cause == IdleCause.HOST_BOUND
    whole = np.where(_is_blamed(idle), by_host, by_next & ~late) | (late & np.append(by_rule, False)[idle.host])
    late_spans = union(idle.start_ns[late], idle.end_ns[late])
    return joined(union(idle.start_ns[whole], idle.end_ns[whole]), intersection(late_spans, host))


def _is_blamed(idle: Idle) -> BoolArray:
    return is_among(idle.cause, _BLAMED) & (idle.host != NONE)


def _device_time(timeline: Timeline, windows: Windows, wanted: BoolArray, spans: Spans | None) -> FloatArray:
    """Device time of the wanted events, and idle time (in `spans`), of each window in ns."""
    idle, of = timeline.idle, np.append(windows.of, NONE)
    rows = timeline.device_rows[wanted[timeline.device_rows]]
    waited_ns = covered_ns(spans, idle.start_ns, idle.end_ns) if spans is not None else idle.end_ns - idle.start_ns
    next_window, blamed = of[idle.before], of[idle.host]
    window = np.where(_is_blamed(idle) & (blamed != NONE), blamed, next_window)
    return _sum(windows, windows.of[rows], timeline.trace.dur_ns[rows]) + _sum(windows, window, waited_ns)


def _sum(windows: Windows, window: Int32Array, values_ns: IntArray) -> FloatArray:
    known = window != NONE
    return np.bincount(window[known], weights=values_ns[known], minlength=len(windows))
