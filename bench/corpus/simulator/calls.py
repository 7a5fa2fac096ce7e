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
    spans: list[tuple[float, float, Mark, Event]] = []
    threads: Counter[tuple[object, object]] = Counter()
    for event in events:
        if event.cat not in _HOST or isinstance(event.ts, UnsetType):
            continue
        if event.cat == "cpu_instant_event" and event.name != "[memory]":
            continue
        duration = 0.0 if isinstance(event.dur, UnsetType) else event.dur
        if event.cat == "user_annotation":
            spans.append((event.ts, -1e-4, Mark.RANGE_BEGIN, event))
            spans.append((event.ts + duration, 0.0, Mark.RANGE_END, event))
        else:
            spans.append((event.ts, -duration, Mark.WHOLE, event))
        threads[event.pid, event.tid] += 1
    if not spans:
        raise ValueError("the recording holds no host events")
    main = threads.most_common(1)[0][0]
    spans = [span for span in spans if (span[3].pid, span[3].tid) == main]
    spans.sort(key=lambda span: span[:2])
    end = max(start - minus for start, minus, _, _ in spans)
    first = spans[0][3]
    root = Node(Event("X", "", pid=first.pid, tid=first.tid), spans[0][0], end, Mark.WHOLE)
    open_nodes = [root]
    for start, minus, mark, event in spans:
        while start >= open_nodes[-1].end and len(open_nodes) > 1:
            open_nodes.pop()
        above = open_nodes[-1]
        whole = mark is Mark.WHOLE
        node = Node(event, start, min(start - minus, above.end) if whole else start, mark)
        above.children.append(node)
        if minus and whole:
            open_nodes.append(node)
    return root
