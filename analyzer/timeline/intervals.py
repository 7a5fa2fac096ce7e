"""Interval algebra on integer nanoseconds. The one place that does it.

A set of intervals is a pair of arrays (start, end), half open. "Merged" means in order, disjoint and not empty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..trace.model import BoolArray, IntArray


@dataclass(frozen=True, slots=True)
class Spans:
    """A merged set of intervals."""

    start_ns: IntArray
    end_ns: IntArray

    @property
    def total_ns(self) -> int:
        """Time covered."""
        return int((self.end_ns - self.start_ns).sum())

    def __len__(self) -> int:
        return len(self.start_ns)


def union(start_ns: IntArray, end_ns: IntArray) -> Spans:
    """The time that any of the intervals covers. They need no order."""
    keep = end_ns > start_ns
    order = np.argsort(start_ns[keep], kind="stable")
    start, end = start_ns[keep][order], end_ns[keep][order]
    if not len(start):
        return Spans(start, end)
    reach = np.maximum.accumulate(end)
    opens = np.flatnonzero(np.append(True, start[1:] > reach[:-1]))
    return Spans(start[opens], reach[np.append(opens[1:], len(start)) - 1])


def complement(spans: Spans, start_ns: int, end_ns: int) -> Spans:
    """The time of [start_ns, end_ns) that `spans` leaves free."""
    start = np.clip(np.append(start_ns, spans.end_ns), start_ns, end_ns)
    end = np.clip(np.append(spans.start_ns, end_ns), start_ns, end_ns)
    keep = end > start
    return Spans(start[keep], end[keep])


def intersection(left: Spans, right: Spans) -> Spans:
    """The time that both cover; cut wherever either has a bound."""
    cuts = np.append(right.start_ns, right.end_ns)
    pieces = cut(left, cuts)
    both = _covers(right, pieces.start_ns)
    return Spans(pieces.start_ns[both], pieces.end_ns[both])


def cut(spans: Spans, moments_ns: IntArray) -> Spans:
    """The same time, parted at the given moments."""
    # Sorted runs one after the other: a stable sort merges them, several times faster than np.unique hashes them.
    bounds = np.sort(np.concatenate([spans.start_ns, spans.end_ns, moments_ns]), kind="stable")
    start, end = bounds[:-1], bounds[1:]
    inside = (end > start) & _covers(spans, start)
    return Spans(start[inside], end[inside])


def covered_ns(spans: Spans, start_ns: IntArray, end_ns: IntArray) -> IntArray:
    """For each interval asked about, the time of it that `spans` covers. Shape of `start_ns`."""
    return np.maximum(_before(spans, end_ns) - _before(spans, start_ns), 0)


def shared_ns(left: Spans, right: Spans) -> int:
    """The time that both cover; cheap where `right` has few intervals."""
    return int(covered_ns(left, right.start_ns, right.end_ns).sum())


def joined(left: Spans, right: Spans) -> Spans:
    """The time that either covers."""
    return union(np.append(left.start_ns, right.start_ns), np.append(left.end_ns, right.end_ns))


def check_sum(busy: Spans, idle: Spans, start_ns: int, end_ns: int) -> None:
    """Assert that busy and idle time make up the span exactly."""
    total = busy.total_ns + idle.total_ns
    if total != end_ns - start_ns:
        raise AssertionError(f"busy and idle time add up to {total} ns of {end_ns - start_ns} ns")


def _before(spans: Spans, moment_ns: IntArray) -> IntArray:
    """Time covered before each moment."""
    if not len(spans):
        return np.zeros(len(moment_ns), dtype=np.int64)
    done = np.append(0, np.cumsum(spans.end_ns - spans.start_ns))
    index = np.searchsorted(spans.start_ns, moment_ns, side="right")
    last = np.maximum(index - 1, 0)
    not_yet = np.where(index > 0, np.maximum(spans.end_ns[last] - moment_ns, 0), 0)
    return done[index] - not_yet


def _covers(spans: Spans, moment_ns: IntArray) -> BoolArray:
    """Whether each moment lies in the set."""
    if not len(spans):
        return np.zeros(len(moment_ns), dtype=bool)
    index = np.searchsorted(spans.start_ns, moment_ns, side="right") - 1
    return (index >= 0) & (moment_ns < spans.end_ns[index])
