"""exposed-allreduce: the device communicates while it computes nothing.

Why it is slow: gradients can be exchanged while the backward pass still computes others. Communication that finds
nothing to hide behind (more bytes than the network moves in that time, buckets that fill too late, many small
exchanges) is added to every step.
Trace: communication kernels, and the part of their time in which no other kernel runs: exposed communication as
Holistic Trace Analysis and TraceLens count it. Where the traces of all ranks are there, time that one late rank
causes is left to straggler-rank.
Edit: half as much communication: gradients of two micro-batches in one exchange (`no_sync`), or half the bytes (a
compression hook). The replay then hides what the backward pass can hide.
Gate: exposed communication under 5 % of the step, or 70 % and more of it hidden; CPU-only recordings.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.backward_calls import python_places
from ..timeline.collectives import CollectiveKind, Collectives, find_collectives
from ..timeline.edit import Edit, Scale
from ..timeline.job import Job
from ..timeline.model import Timeline
from ..timeline.select import count_per_step, events_of, in_typical_step, us_per_step
from ..trace.model import FloatArray, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .late_ranks import late_ranks

_MIN_EXPOSED_PCT = 5.0
_MAX_OVERLAP_PCT = 70.0
_KEPT = 0.5
"""Share of the communication that is left: one exchange for two micro-batches, or half the bytes."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate, if the step waits for communication."""
    breakdown = timeline.breakdown
    if timeline.is_cpu_only or not breakdown.communication_exposed_pct > _MIN_EXPOSED_PCT:
        return
    if breakdown.communication_overlap_pct >= _MAX_OVERLAP_PCT:
        return
    found = find_collectives(timeline)
    if not len(found):
        return
    late_ns = _late_ns(timeline.job, found)
    yield Candidate(
        what="communication runs while the device computes nothing",
        remedy="exchanging half as much or half as often",
        occurrences=tuple(_occurrences(timeline, found, late_ns)),
        evidence=tuple(_evidence(timeline, found)),
        cost_us_per_step=breakdown.communication_exposed_pct / 100 * timeline.step_us,
        probability=0.9,
    )


def _occurrences(timeline: Timeline, found: Collectives, late_ns: FloatArray) -> Iterator[Occurrence]:
    """One for each place in the program that communicates: a call of the backward pass has several exchanges."""
    anchors = python_places(timeline, found.host)
    took_ns = np.maximum(timeline.trace.dur_ns[found.row], 1)
    factor = np.clip(1 - (1 - _KEPT) * (took_ns - late_ns) / took_ns, 0, 1)
    for anchor in dict.fromkeys(anchors.tolist()):
        here = np.flatnonzero(anchors == anchor)
        scales = tuple(Scale(found.row[[i]], round(float(factor[i]), 3)) for i in here.tolist())
        yield Occurrence(anchor, Edit.union([Edit(scales=scales)]), found.row[here])


def _late_ns(job: Job | None, found: Collectives) -> FloatArray:
    """Of each collective's time, how long the reported rank waited for a few late ranks; 0 where not known."""
    waits = np.zeros(len(found))
    if job is None:
        return waits
    for late in late_ranks(job):
        waits[np.searchsorted(found.row, job.row[late.at])] = np.minimum(_behind_ns(job)[late.at], late.gap_ns)
    return waits


def _behind_ns(job: Job) -> FloatArray:
    """By how much the last rank comes to each collective after the reported one."""
    return job.arrival_ns.max(axis=0) - job.arrival_ns[job.reported]


def _evidence(timeline: Timeline, found: Collectives) -> Iterator[Evidence]:
    breakdown, rows, job = timeline.breakdown, found.row, timeline.job
    events = events_of(timeline, in_typical_step(timeline, np.sort(rows)))
    exposed, hidden = breakdown.communication_exposed_pct, breakdown.communication_overlap_pct
    yield Evidence("communication", "communication per step", _ms_per_step(timeline, rows), "ms", events)
    yield Evidence("exposed", "of the step, communication with nothing beside it", round(exposed, 1), "%")
    yield Evidence("overlap", "of the communication, hidden behind computing", round(hidden, 1), "%")
    yield Evidence("collectives", "collectives per step", count_per_step(timeline, rows), "")
    for kind in CollectiveKind:
        of_kind = rows[found.kind == kind]
        if 0 < len(of_kind) < len(rows):
            name = kind.name.lower().replace("_", "-")
            yield Evidence(name, f"{name} per step", _ms_per_step(timeline, of_kind), "ms")
    if job is not None and len(job.row):
        share = 100 * _behind_ns(job).sum() / max(timeline.trace.dur_ns[rows].sum(), 1)
        yield Evidence("waiting", "of the communication, waiting for other ranks", round(float(share), 1), "%")


def _ms_per_step(timeline: Timeline, rows: IntArray) -> float:
    return round(us_per_step(timeline, rows) / 1000, 3)


PATTERN = Pattern(
    code="TAP902",
    slug="exposed-allreduce",
    title="Step waits for communication",
    fix=FixKind.ADVICE,
    find=find,
    needs=("device",),
    group="distributed",
    stage=Stage.HARDWARE,
)
