"""non-nccl-backend: tensors on the device are exchanged through the host.

Why it is slow: gloo (and MPI without device support) copies each bucket of gradients to the host, exchanges it there
and copies it back, while the backend made for it (NCCL, on AMD RCCL) moves it from device to device beside the backward
pass.
Trace: device work, no communication kernel, and ranges of the backend on the host (`gloo:all_reduce`), with copies
between host and device that its threads launch or that begin in those ranges.
Edit: the backend's ranges and their copies do not run, and what waits for them on the main thread is shorter by the
time in which the device idles meanwhile. What NCCL takes instead is taken to hide behind the backward pass.
Gate: CPU training; exchanges of tensors on the host, for which nothing is copied to or from the device.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.backward_calls import python_places
from ..timeline.collectives import backend_ranges
from ..timeline.columns import is_among, median
from ..timeline.edit import Edit, Scale
from ..timeline.intervals import Spans, covered_ns, intersection, union
from ..timeline.main_thread import innermost_at
from ..timeline.model import KernelClass, Timeline
from ..timeline.select import count_per_step, device_rows, events_of, in_typical_step
from ..trace.model import NONE, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern

_COPIES = (KernelClass.MEMCPY_DTOH, KernelClass.MEMCPY_HTOD)


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate, if the host exchanges what lies on the device."""
    if timeline.is_cpu_only:
        return
    ranges, device = backend_ranges(timeline), device_rows(timeline)
    if not len(ranges) or (timeline.kernel_class[device] == KernelClass.COMMUNICATION).any():
        return
    copies = _copies(timeline, device, ranges)
    if not len(copies):
        return
    exposed = _exposed(timeline, ranges)
    events = events_of(timeline, in_typical_step(timeline, ranges))
    copied = count_per_step(timeline, copies)
    yield Candidate(
        what="gradients are exchanged through the host",
        remedy="the device's own backend (nccl)",
        occurrences=tuple(_occurrences(timeline, ranges, copies, exposed)),
        evidence=(
            Evidence("exchanges", "exchanges on the host per step", count_per_step(timeline, ranges), "", events),
            Evidence("copies", "copies between host and device for them, per step", copied, ""),
        ),
        cost_us_per_step=_us_per_step(timeline, exposed),
        probability=0.9,
    )


def _copies(timeline: Timeline, device: IntArray, ranges: IntArray) -> IntArray:
    """Copies between host and device that the backend's threads launch, or that begin while it exchanges."""
    trace = timeline.trace
    copies = device[is_among(timeline.kernel_class[device], _COPIES)]
    call = timeline.launches.runtime[copies]
    by_backend = (call != NONE) & is_among(trace.thread[call], trace.thread[ranges])
    busy = union(trace.ts_ns[ranges], trace.end_ns[ranges])
    moment = trace.ts_ns[copies]
    return copies[by_backend | (covered_ns(busy, moment, moment + 1) > 0)]


def _exposed(timeline: Timeline, ranges: IntArray) -> Spans:
    """The time in which the backend exchanges and the device does nothing."""
    trace, idle = timeline.trace, timeline.idle
    return intersection(union(idle.start_ns, idle.end_ns), union(trace.ts_ns[ranges], trace.end_ns[ranges]))


def _occurrences(timeline: Timeline, ranges: IntArray, copies: IntArray, exposed: Spans) -> Iterator[Occurrence]:
    """One for each step."""
    trace, steps = timeline.trace, timeline.steps
    calls = timeline.launches.runtime[copies].astype(np.int64)
    for step in steps.steady.tolist():
        here = ranges[steps.of[ranges] == step]
        if not len(here):
            continue
        copied = copies[steps.of[copies] == step]
        launches = calls[(steps.of[copies] == step) & (calls != NONE)]
        longest = int(here[trace.dur_ns[here].argmax()])
        waiting = np.array([innermost_at(timeline, int(trace.ts_ns[longest] + trace.dur_ns[longest] // 2))])
        idle_ns = int(covered_ns(exposed, trace.ts_ns[waiting], trace.end_ns[waiting])[0])
        shorter = Scale(waiting, max(1 - idle_ns / max(int(trace.dur_ns[waiting[0]]), 1), 0.0))
        gone = np.sort(np.concatenate([here, launches, copied]))
        anchor = int(python_places(timeline, waiting)[0])
        yield Occurrence(anchor, Edit(scales=(shorter,), removed_ops=gone), np.sort(np.concatenate([here, copied])))


def _us_per_step(timeline: Timeline, exposed: Spans) -> float:
    steps = timeline.steps
    spent = [covered_ns(exposed, steps.start_ns[[i]], steps.end_ns[[i]])[0] for i in steps.steady.tolist()]
    return median(np.array(spent)) / 1000 if spent else 0.0


PATTERN = Pattern(
    code="TAP910",
    slug="non-nccl-backend",
    title="Gradients are exchanged through the host",
    fix=FixKind.UNSAFE,
    find=find,
    needs=("device",),
    group="distributed",
    stage=Stage.HARDWARE,
)
