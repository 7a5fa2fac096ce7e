"""host-thread-contention: more threads want to run than the host has cores.

Why it is slow: OpenCV starts a thread per core in every worker process, and libraries with OpenMP do what
OMP_NUM_THREADS says: workers times cores threads take turns, and the thread that launches kernels is one of them.
Trace: waits for a loader's workers, 5 % of the steps or more, or launch calls that take 15 µs and more; the worker
processes themselves are not in the trace, so that the source has to tell.
Edit: of the waits four fifths are left (a report measured 8 % of the whole step), and launches take 6 µs again.
Gate: loops without worker processes; waits and launches of usual length; sources without an oversubscribed library.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import is_named, median
from ..timeline.edit import Edit, Scale, no_rows
from ..timeline.model import Timeline
from ..timeline.select import count_per_step, events_of, in_typical_step, steady
from ..timeline.sites import group_by_site
from ..trace.model import Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .loading import come_in_bursts, starved_waits, waits_for_workers

_LEFT_OF_WAITS = 0.8
_SLOW_LAUNCH_NS = 15_000
_USUAL_LAUNCH_NS = 6_000
_LEAST_LAUNCHES = 50


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per loop that waits for workers, or that launches slowly beside them."""
    launches = _slow_launches(timeline)
    starved = starved_waits(timeline)
    sites = starved or (group_by_site(timeline, waits_for_workers(timeline)) if len(launches) else [])
    for waits in sites:
        yield _candidate(timeline, waits, launches, is_starved=bool(starved))


def _candidate(timeline: Timeline, waits: IntArray, launches: IntArray, *, is_starved: bool) -> Candidate:
    dur_ns, of = timeline.trace.dur_ns, timeline.steps.of
    occurrences = []
    for wait in waits.tolist():
        row = np.array([wait])
        slow = launches[of[launches] == of[wait]]
        scales = (Scale(row, _LEFT_OF_WAITS),) if is_starved else ()
        if len(slow):
            scales = (*scales, Scale(slow, _USUAL_LAUNCH_NS / median(dur_ns[launches])))
        occurrences.append(
            Occurrence(wait, Edit(scales=scales), np.sort(np.concatenate([slow, row if is_starved else no_rows()])))
        )
    evidence = [
        Evidence(
            "wait",
            "mean wait for a batch",
            round(float(dur_ns[waits].mean()) / 1e6, 3),
            "ms",
            events_of(timeline, in_typical_step(timeline, waits)),
        )
    ]
    if len(launches):
        evidence.append(Evidence("launch", "median launch call", round(median(dur_ns[launches]) / 1000, 1), "µs"))
    return Candidate(
        what="threads of the loader's workers compete for the host's cores",
        remedy="one thread per worker",
        occurrences=tuple(occurrences),
        evidence=tuple(evidence),
        is_periodic=is_starved and come_in_bursts(timeline, waits),
        needs_source=True,
        probability=0.7,
    )


def _slow_launches(timeline: Timeline) -> IntArray:
    """The launch calls of the steady steps, if they usually take long and there are many of them."""
    trace = timeline.trace
    rows = steady(timeline, trace.rows(Category.RUNTIME))
    rows = rows[is_named(trace, rows, lambda name: "LaunchKernel" in name)]
    if count_per_step(timeline, rows) < _LEAST_LAUNCHES or median(trace.dur_ns[rows]) < _SLOW_LAUNCH_NS:
        return no_rows()
    return rows


PATTERN = Pattern(
    code="TAP106",
    slug="host-thread-contention",
    title="Too many threads on the host",
    fix=FixKind.SAFE,
    find=find,
    group="data and host",
    stage=Stage.HARDWARE,
)
