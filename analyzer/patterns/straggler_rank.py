"""straggler-rank: at the collectives, all ranks wait for the same one.

Why it is slow: a collective ends when the last rank has come, so a rank that takes longer (more data, a slower loader,
logging, a slower device) makes every other one as slow.
Trace: the traces of all ranks, on one clock (`timeline.job`): the same rank, or the same few, begin the collectives
last by a clear gap. One rank's backward pass says nothing: it holds the waiting, so it is as long on all of them.
Edit: the late ranks come with the first of the others, so each collective is shorter by the gap. On a late rank itself,
what it does before the collective is shorter by as much.
Gate: fewer than two ranks; a rank that is last in half of the steps or fewer, since somebody always is. Where ranks are
late by turns in the same part of the step, the finding is only a hint.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.backward_calls import python_places
from ..timeline.columns import distinct, median, quartiles
from ..timeline.edit import Edit, Scale
from ..timeline.job import Job
from ..timeline.main_thread import innermost_at
from ..timeline.model import Phase, Timeline
from ..timeline.select import events_of, outermost
from ..timeline.sites import Site, SiteFinder
from ..trace.model import HOST_CATEGORIES, NONE, FloatArray, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .late_ranks import LateRanks, late_ranks

_STEADY = 0.5
"""A rank is slow, not unlucky, if it is late by this share of the median in three of four steps, and later by this
share than others are in their turn."""
_ONE_TIME = 0.4
"""How sure it is where that cannot be said."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate for each rank, or few ranks, that the others wait for in most steps."""
    job = timeline.job
    if job is None:
        return
    everyone = late_ranks(job)
    for late in everyone:
        candidate = _candidate(timeline, job, late, everyone)
        if candidate is not None and candidate.occurrences:
            yield candidate


def _candidate(timeline: Timeline, job: Job, late: LateRanks, everyone: list[LateRanks]) -> Candidate | None:
    """The candidate of some late ranks; None where they are late in half of the steps or fewer."""
    gaps_us = _us_each_step(job, late.at, late.gap_ns)
    if not median(gaps_us) > 0:
        return None
    is_own = job.reported in late.ranks
    behind_ns = (job.arrival_ns.max(axis=0) - job.arrival_ns[job.reported])[late.at]
    waited_ns = np.minimum(behind_ns, late.gap_ns)
    rows = job.row[late.at]
    parts: list[tuple[float, Occurrence]] = []
    for at, row, gap_ns, wait_ns in zip(late.at.tolist(), rows.tolist(), late.gap_ns, waited_ns, strict=True):
        new = _own_work(timeline, job, at, gap_ns) if is_own else _wait(timeline, row, wait_ns)
        if new is not None:
            parts.append((float(gap_ns), new))
    who = _named([job.numbers[i] for i in late.ranks])
    is_steady = quartiles(gaps_us)[0] >= _STEADY * median(gaps_us) and len(late.at) > 1
    is_sure = is_steady and _net_us(timeline, job, late, everyone) >= _STEADY * median(gaps_us)
    return Candidate(
        what=f"the other ranks wait for {who} at the collectives",
        remedy=f"the same work in the same time on {who} as on the others",
        occurrences=_one_for_each_step(timeline, parts),
        evidence=(
            Evidence("rank", "arrives last", who, "", events_of(timeline, np.sort(rows))),
            Evidence("collectives", "at collectives", f"{len(late.at)} of {len(job.step)}", ""),
            Evidence("gap", "later than the next rank, per step", round(median(gaps_us) / 1000, 3), "ms"),
            *_reasons(timeline, job, late),
        ),
        cost_us_per_step=median(_us_each_step(job, late.at, late.gap_ns if is_own else waited_ns)),
        probability=0.9 if is_sure else _ONE_TIME,
    )


def _net_us(timeline: Timeline, job: Job, late: LateRanks, everyone: list[LateRanks]) -> float:
    """How much later the ranks are in a step than others are in their turn, in the same parts of it: the median.

    Ranks that are late by turns are unlucky. One that is late in the forward pass and another in the backward pass
    each have a reason.
    """
    phase = timeline.phase[_hosts(timeline, job.row)]

    def late_us(one: LateRanks, of: int) -> FloatArray:
        chosen = phase[one.at] == of
        return _us_each_step(job, one.at[chosen], one.gap_ns[chosen])

    net_us = np.zeros(len(distinct(job.step)))
    for part in distinct(phase[late.at]).tolist():
        others_us = sum(late_us(other, part) for other in everyone if other is not late)
        net_us += np.maximum(late_us(late, part) - others_us, 0.0)
    return median(net_us)


def _one_for_each_step(timeline: Timeline, parts: list[tuple[float, Occurrence]]) -> tuple[Occurrence, ...]:
    """One occurrence per step, with the edits of all its collectives, at the place where most is waited."""
    finder = SiteFinder(timeline)
    sites = [finder.site(one.anchor) for _, one in parts]
    waited: dict[Site, float] = {}
    for site, (gap_ns, _) in zip(sites, parts, strict=True):
        waited[site] = waited.get(site, 0.0) + gap_ns
    by_step: dict[int, list[tuple[float, Occurrence]]] = {}
    for site, (_, one) in zip(sites, parts, strict=True):
        by_step.setdefault(int(timeline.steps.of[one.anchor]), []).append((waited[site], one))
    return tuple(
        Occurrence(
            max(held, key=lambda pair: pair[0])[1].anchor,
            Edit.union(one.edit for _, one in held),
            np.sort(np.concatenate([one.cost_rows for _, one in held])),
        )
        for _, held in sorted(by_step.items())
    )


def _reasons(timeline: Timeline, job: Job, late: LateRanks) -> Iterator[Evidence]:
    """What the late ranks did longer than the others do, before the collectives at which they are late."""
    others = [i for i in range(len(job.ranks)) if i not in late.ranks]
    phases = timeline.phase[_hosts(timeline, job.row[late.at])]
    counts = np.bincount(phases, minlength=len(Phase))
    yield Evidence("region", "most of these collectives belong to", Phase(int(counts.argmax())).name.lower(), "")
    for name, what, spent in (
        ("computing", "more computing before them than on the other ranks, per step", job.computing_ns),
        ("loading", "more waiting for data before them, per step", job.loading_ns),
        ("host", "more time with neither before them, per step", job.other_ns),
    ):
        here = spent[:, late.at]
        more_ns = here[list(late.ranks)].mean(axis=0) - np.sort(here[others], axis=0)[len(others) // 2]
        yield Evidence(name, what, round(median(_us_each_step(job, late.at, more_ns)) / 1000, 3), "ms")


def _wait(timeline: Timeline, row: int, wait_ns: float) -> Occurrence:
    """A collective of the reported rank, shorter by the time that it waited for others."""
    if timeline.is_cpu_only:
        # A backend's thread waits, and somewhere the main thread for it: the innermost event that holds the wait.
        moment = int(timeline.trace.ts_ns[row] + wait_ns / 2)
        row = innermost_at(timeline, moment) if wait_ns > 0 else row
        return Occurrence(row, Edit(scales=(_shorter(timeline, row, wait_ns),)), np.array([row]))
    host = _hosts(timeline, np.array([row]))
    anchor = int(python_places(timeline, host)[0])
    return Occurrence(anchor, Edit(scales=(_shorter(timeline, row, wait_ns),)), np.array([row]))


def _own_work(timeline: Timeline, job: Job, at: int, gap_ns: float) -> Occurrence | None:
    """What the reported rank does before a collective, shorter by the gap; None where there is nothing to shorten."""
    trace = timeline.trace
    row = int(job.row[at])
    start, since = int(trace.ts_ns[row]), int(job.since_ns[job.reported, at])
    hosts = trace.rows(*HOST_CATEGORIES)
    hosts = hosts[(trace.ts_ns[hosts] >= start - since) & (trace.end_ns[hosts] <= start)]
    device = timeline.device_rows
    device = device[(trace.ts_ns[device] >= start - since) & (trace.end_ns[device] <= start)]
    rows = np.sort(np.concatenate([outermost(timeline, hosts), device]))
    if not len(rows):
        return None
    anchor = int(hosts[trace.dur_ns[hosts].argmax()]) if len(hosts) else row
    return Occurrence(anchor, Edit(scales=(Scale(rows, max(1 - gap_ns / since, 0.0)),)), np.array([row]))


def _shorter(timeline: Timeline, row: int, by_ns: float) -> Scale:
    took_ns = max(float(timeline.trace.dur_ns[row]), 1.0)
    return Scale(np.array([row]), max(1 - by_ns / took_ns, 0.0))


def _hosts(timeline: Timeline, rows: IntArray) -> IntArray:
    """The operator that launched each row; the row itself on the CPU, or where none is known."""
    op = timeline.launches.op[rows]
    return np.where(op != NONE, op, rows).astype(np.int64)


def _us_each_step(job: Job, at: IntArray, values_ns: FloatArray) -> FloatArray:
    """Sum of a value over some collectives in each step of the job, in µs."""
    steps = distinct(job.step)
    place = np.searchsorted(steps, job.step[at])
    return np.bincount(place, weights=values_ns, minlength=len(steps)) / 1000


def _named(numbers: list[int]) -> str:
    """`rank 7`, `ranks 4 and 5`."""
    words = [str(number) for number in numbers]
    return f"ranks {', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else f"rank {words[0]}"


PATTERN = Pattern(
    code="TAP905",
    slug="straggler-rank",
    title="Ranks wait for one of them",
    fix=FixKind.ADVICE,
    find=find,
    needs=("steps",),
    group="distributed",
    stage=Stage.HARDWARE,
)
