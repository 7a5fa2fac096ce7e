"""Takes the corpus's own ranges out of recordings, with all that would tell that they were there.

First `without_overhead`, right after recording: entering and leaving a range takes the host some 50 µs, in frames of
its own. Those frames go, and the time they took is cut out of the recording, so that what is left of the ranges costs
nothing; so do the hooks in Python that stand for those of DistributedDataParallel, which are C++. Then, of the
recording itself or of what the simulator made of it, `take_out`: the ranges go, what they marked is handed back beside
the document, and frames of faults get the file name of the job's family.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from torchtraceap.analyzer.timeline.intervals import complement, covered_ns, intersection, union
from torchtraceap.analyzer.trace.model import NONE, BoolArray, IntArray

from . import marks
from .simulator.document import Event, parse, serialize

_ENTERS = re.compile(r"^torch/autograd/profiler\.py\(\d+\): __enter__$")
_LEAVES = re.compile(r"^torch/autograd/profiler\.py\(\d+\): __exit__$")
_MAKES = re.compile(r"^bench/corpus/(marks\.py\(\d+\): (spoiled|healthy|on_host|act)$|reduction\.py\()")
_MOVES = re.compile(r"^bench/corpus/marks\.py\(\d+\): (to_device|to_host)$")
_OURS = re.compile(r"^bench/corpus/(?:faults/[\w/]+|marks|surgery)\.py(?=\()")
_NMS = "torchvision::nms"
"""boxes.py implements it in Python where torchvision is absent; torchvision does so in C++, which leaves no frames."""


Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Spoiled:
    """A stretch of host time in which a fault worked."""

    slug: str
    pid: str
    tid: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A document without the corpus's ranges, and what those said. Times as `Trace.ts_ns`."""

    document: bytes
    spoiled: tuple[Spoiled, ...]


def without_overhead(document: bytes, *, keeps_time: bool = False) -> bytes:
    """Take out what making, entering and leaving the ranges of `marks` did. With a real device, which works on
    meanwhile, the time stays (`keeps_time`)."""
    content = parse(document)
    table = _Table(content.events)
    is_range = table.ranges()
    gone = table.named(_MAKES.match)
    gone |= table.holding(table.named(_ENTERS.match), is_range, table.start_ns)
    gone |= table.holding(table.named(_LEAVES.match), is_range, table.end_ns)
    nms = table.named(lambda name: name == _NMS)
    kept = is_range | ~(table.lie_in(gone) | (table.lie_in(nms) & ~nms))
    content.events = table.keep(kept, cut_out=None if keeps_time else gone)
    return serialize(content)


def take_out(document: bytes, family: str, *, moves_nothing: bool = False) -> Cleaned:
    """Take out the ranges. On the CPU copies to and from the device are none and go too, with their time
    (`moves_nothing`)."""
    content = parse(document)
    table = _Table(content.events)
    if moves_nothing:
        is_range, moves = table.ranges(), table.named(_MOVES.match)
        table = _Table(table.keep(is_range | ~table.lie_in(moves), cut_out=moves))
    is_range = table.ranges()
    content.events = table.keep(~is_range)
    for event in content.events:
        if event.cat == "python_function" and event.name.startswith("bench/corpus/"):
            event.name = _OURS.sub(f"bench/corpus/families/{family}.py", event.name)
    return Cleaned(serialize(content), tuple(table.spoiled(is_range)))


class _Table:
    """Events with their times in columns. Masks have shape (events,). Metadata and counters lie nowhere in time."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.start_ns = _nanoseconds([event.ts for event in events])
        self.end_ns = self.start_ns + _nanoseconds([event.dur for event in events])
        self.thread = _numbers([(event.pid, event.tid) for event in events])[0]
        phase, phases = _numbers([event.ph for event in events])
        self.is_slice = phase == phases.get("X", NONE)
        self.is_arrow = (phase == phases.get("s", NONE)) | (phase == phases.get("f", NONE))
        self.name, self.names = _numbers([event.name for event in events])

    def named(self, question: Callable[[str], object]) -> BoolArray:
        """Which slices have a name that answers yes."""
        answer = np.array([bool(question(name)) for name in self.names], dtype=np.bool_)
        return self.is_slice & answer[self.name]

    def ranges(self) -> BoolArray:
        """Which events are ranges of `marks`."""
        return self.named(lambda name: name.startswith(marks.PREFIX))

    def lie_in(self, holders: BoolArray) -> BoolArray:
        """Which events lie in one of the holders, on its thread; holders lie in themselves."""
        found = np.zeros(len(self.events), dtype=np.bool_)
        for thread in np.unique(self.thread[holders]).tolist():
            its = holders & (self.thread == thread)
            spans = union(self.start_ns[its], self.end_ns[its])
            at = np.searchsorted(spans.start_ns, self.start_ns, side="right") - 1
            found |= (self.thread == thread) & (at >= 0) & (self.end_ns <= spans.end_ns[at])
        return found

    def holding(self, frames: BoolArray, others: BoolArray, moment_ns: IntArray) -> BoolArray:
        """Which of the frames have the moment of one of the others of their thread in them."""
        found = np.zeros(len(self.events), dtype=np.bool_)
        for thread in np.unique(self.thread[frames & self.is_slice]).tolist():
            moments = np.sort(moment_ns[others & (self.thread == thread)])
            rows = np.flatnonzero(frames & (self.thread == thread))
            at = np.searchsorted(moments, self.start_ns[rows])
            found[rows] = np.append(moments, np.iinfo(np.int64).max)[at] <= self.end_ns[rows]
        return found

    def keep(self, kept: BoolArray, cut_out: BoolArray | None = None) -> list[Event]:
        """Those events; arrows of which one end goes lose the other. All as if `cut_out` had taken no time."""
        if cut_out is not None and cut_out.any():
            self._move(cut_out)
        arrows = {self.events[row].id for row in np.flatnonzero(self.is_arrow & ~kept).tolist()}
        rest = [self.events[row] for row in np.flatnonzero(kept).tolist()]
        return [event for event in rest if event.ph not in "sf" or event.id not in arrows] if arrows else rest

    def _move(self, cut_out: BoolArray) -> None:
        # Each bound of a range keeps a nanosecond, so that what holds what stays plain.
        ranges = self.ranges()
        bounds = np.append(self.start_ns[ranges], self.end_ns[ranges])
        cuts = union(self.start_ns[cut_out], self.end_ns[cut_out])
        spans = intersection(cuts, complement(union(bounds, bounds + 1), int(cuts.start_ns[0]), int(cuts.end_ns[-1])))
        first = np.full_like(self.start_ns, spans.start_ns[0])
        start_ns = self.start_ns - covered_ns(spans, first, self.start_ns)
        end_ns = self.end_ns - covered_ns(spans, first, self.end_ns)
        starts_us, lasts_us = (start_ns / 1000).tolist(), ((end_ns - start_ns) / 1000).tolist()
        for event, ts, dur in zip(self.events, starts_us, lasts_us, strict=True):
            if event.ph != "M":
                event.ts = ts
            if event.ph == "X":
                event.dur = dur

    def spoiled(self, ranges: BoolArray) -> list[Spoiled]:
        """What the ranges of faults say; empty ones say nothing."""
        found = []
        for row in np.flatnonzero(ranges & (self.end_ns > self.start_ns)).tolist():
            event = self.events[row]
            # Devices repeat ranges on their streams; the host's tell all.
            if event.name.startswith(marks.SPOILED) and event.cat == "user_annotation":
                slug, span_ns = event.name.removeprefix(marks.SPOILED), (self.start_ns[row], self.end_ns[row])
                found.append(Spoiled(slug, str(event.pid), str(event.tid), *map(int, span_ns)))
        return found


def _nanoseconds(times_us: list[Any]) -> IntArray:
    """0 where an event has no such time."""
    known = [time or 0.0 for time in times_us]
    return np.rint(np.array(known, dtype=np.float64) * 1000).astype(np.int64)


def _numbers(values: Sequence[Key]) -> tuple[IntArray, dict[Key, int]]:
    """A number for each value, the same for equal ones, and the numbers by value, in order."""
    numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return np.array([numbers[value] for value in values], dtype=np.int64), numbers
