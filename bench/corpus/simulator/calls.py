"""Nested host events of a recording.

Ranges (`record_function`) begin inside one Python call and end inside another, so that they nest with nothing: their
beginnings and ends are leaves of the tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum

from msgspec import UnsetType

from .document import Event

_Span = tuple[float, int, float, "Mark", Event]
"""Start, order among equal starts, negative length (what holds others comes first), mark, event."""
_HOST = frozenset(("cpu_op", "user_annotation", "python_function", "cpu_instant_event"))


class Mark(Enum):
    """What a node stands for."""

    WHOLE = 0
    RANGE_BEGIN = 1
    RANGE_END = 2


class Node:
    """A host event (or `[memory]` instant) and those inside it. Times in µs, as recorded."""

    __slots__ = ("begin", "children", "end", "event", "mark")

    def __init__(self, event: Event, begin: float, end: float, mark: Mark) -> None:
        self.event = event
        self.begin = begin
        self.end = end
        self.mark = mark
        self.children: list[Node] = []


def build(events: Iterable[Event]) -> Node:
    """The tree of the busiest thread. Its root stands for the thread, and has an event without a name."""
    spans: list[_Span] = []
    threads: Counter[tuple[object, object]] = Counter()
    for event in events:
        if event.cat not in _HOST or isinstance(event.ts, UnsetType):
            continue
        if event.cat == "cpu_instant_event" and event.name != "[memory]":
            continue
        start, duration = event.ts, 0.0 if isinstance(event.dur, UnsetType) else event.dur
        if event.cat == "user_annotation":
            spans.append((start, 1, -duration, Mark.RANGE_BEGIN, event))
            spans.append((start + duration, 0 if duration else 1, 0.0, Mark.RANGE_END, event))
        else:
            spans.append((start, 1, -duration, Mark.WHOLE, event))
        threads[event.pid, event.tid] += 1
    if not spans:
        raise ValueError("the recording holds no host events")
    main = threads.most_common(1)[0][0]
    spans = [span for span in spans if (span[-1].pid, span[-1].tid) == main]
    spans.sort(key=lambda span: span[:3])
    first = spans[0][-1]
    end = max(start - minus for start, _, minus, _, _ in spans)
    root = Node(Event("X", "", pid=first.pid, tid=first.tid), spans[0][0], end, Mark.WHOLE)
    open_nodes = [root]
    for start, _, minus, mark, event in spans:
        while start >= open_nodes[-1].end and len(open_nodes) > 1:
            open_nodes.pop()
        above = open_nodes[-1]
        is_whole = mark is Mark.WHOLE
        node = Node(event, start, min(start - minus, above.end) if is_whole else start, mark)
        above.children.append(node)
        if is_whole and minus:
            open_nodes.append(node)
    return root
