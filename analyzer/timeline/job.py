"""Several ranks as one job: what each did up to every collective that they share, on one clock.

Each rank is read by itself and boiled down to a few small columns (`rank_of`), so that a job of many ranks needs
hardly more memory than one of them. `align` then matches the collectives by step, kind and order, and shifts the ranks'
clocks so that they end together: a collective that waits for everybody ends on all ranks within microseconds, whatever
the clocks say. When each rank *began* it is then comparable, and so is who kept whom waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..trace.model import DEVICE_CATEGORIES, NONE, BoolArray, Category, FloatArray, Int8Array, IntArray
from .collectives import CollectiveKind, Collectives, find_collectives
from .columns import is_among, median
from .intervals import Spans, covered_ns, joined, union
from .model import KernelClass, Phase, Timeline
from .rank_names import rank_in_name

_ONE_WAY = (CollectiveKind.BROADCAST, CollectiveKind.REDUCE)
"""Kinds that some rank may leave before the others have come."""


@dataclass(frozen=True, slots=True)
class Rank:
    """What a job keeps of one rank. Arrays have shape (its collectives,), in order of start."""

    number: int
    """Its rank; NONE if neither the trace nor the file's name says."""
    world_size: int
    """Ranks that the job has; NONE if not recorded."""
    paths: tuple[str, ...]
    step_us: float
    row: IntArray
    """Rows of the rank's own trace."""
    step: IntArray
    """Number of the step."""
    kind: Int8Array
    start_ns: IntArray
    end_ns: IntArray
    since_ns: IntArray
    """Time since the collective before it (of the same step), or the step, began."""
    computing_ns: IntArray
    """Of that time: device work other than communication; on the CPU, operators."""
    loading_ns: IntArray
    """Of that time: waiting for the data loader, while nothing computes."""
    other_ns: IntArray
    """Of that time: neither, and no communication."""
    problems: tuple[str, ...] = ()
    """What of its trace could not be used, in words."""


@dataclass(frozen=True, slots=True)
class Job:
    """The ranks of one job on one clock. Matrices have shape (ranks, collectives that all of them share)."""

    ranks: tuple[Rank, ...]
    """Those that can be compared, in order of rank."""
    reported: int
    """Index of the rank whose timeline holds this job."""
    step: IntArray
    """Shape (collectives,): number of the step."""
    kind: Int8Array
    """Shape (collectives,)."""
    row: IntArray
    """Shape (collectives,): row in the reported rank's trace."""
    arrival_ns: FloatArray
    """When each rank began each collective, by the common clock."""
    end_ns: FloatArray
    """When each rank was done with it, by the common clock."""
    since_ns: IntArray
    computing_ns: IntArray
    loading_ns: IntArray
    other_ns: IntArray
    paths: tuple[str, ...]
    """The files of all ranks, in order of rank, those that cannot be compared too."""
    problems: tuple[str, ...] = ()
    """Ranks that are missing, and what does not fit, in words."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The rank of each of `ranks`."""
        return tuple(rank.number for rank in self.ranks)


def rank_of(timeline: Timeline) -> Rank:
    """What a job needs to know of one rank."""
    trace = timeline.trace
    found = _of_all(find_collectives(timeline), _world_size(timeline))
    said = trace.info.distributed
    named = next((n for path in trace.info.paths if (n := rank_in_name(path)) != NONE), NONE)
    start_ns, end_ns = trace.ts_ns[found.row], trace.end_ns[found.row]
    of = timeline.steps.of[found.row]
    step_ns = timeline.steps.start_ns[of]
    since_ns = np.maximum(np.append(step_ns[:1], start_ns[:-1]), step_ns)
    spent = _spent(timeline, found, since_ns, start_ns)
    return Rank(
        number=said.rank if said is not None and said.rank != NONE else named,
        world_size=_world_size(timeline),
        paths=trace.info.paths,
        step_us=timeline.step_us,
        row=found.row,
        step=timeline.steps.number[of],
        kind=found.kind,
        start_ns=start_ns,
        end_ns=end_ns,
        since_ns=start_ns - since_ns,
        computing_ns=spent[0],
        loading_ns=spent[1],
        other_ns=spent[2],
        problems=tuple(problem.text for problem in trace.problems),
    )


def align(ranks: Sequence[Rank], reported: Rank, problems: Sequence[str] = ()) -> Job:
    """One job of ranks, their clocks shifted so that the collectives they share end together."""
    everyone = sorted(ranks, key=lambda rank: rank.number)
    ordered = _comparable(everyone, reported)
    places = _shared(ordered)
    own = next(i for i, rank in enumerate(ordered) if rank is reported)
    start, end = (_matrix([getattr(r, name) for r in ordered], places) for name in ("start_ns", "end_ns"))
    kind = ordered[own].kind[places[own]]
    offset = _offsets(end, kind)
    origin = start.min(initial=0)
    return Job(
        ranks=ordered,
        reported=own,
        step=ordered[own].step[places[own]],
        kind=kind,
        row=ordered[own].row[places[own]],
        arrival_ns=(start - origin) - offset[:, None],
        end_ns=(end - origin) - offset[:, None],
        since_ns=_matrix([rank.since_ns for rank in ordered], places),
        computing_ns=_matrix([rank.computing_ns for rank in ordered], places),
        loading_ns=_matrix([rank.loading_ns for rank in ordered], places),
        other_ns=_matrix([rank.other_ns for rank in ordered], places),
        paths=tuple(path for rank in everyone for path in rank.paths),
        problems=(*problems, *_of_others(everyone, reported), *_doubts(everyone, ordered, len(places[own]))),
    )


def _world_size(timeline: Timeline) -> int:
    said = timeline.trace.info.distributed
    return said.world_size if said is not None else NONE


def _of_all(found: Collectives, world_size: int) -> Collectives:
    """Those collectives in which all ranks take part, as far as their sizes are recorded."""
    whole = max(world_size, int(found.group_size.max(initial=NONE)))
    keep = np.flatnonzero((found.group_size == NONE) | (found.group_size == whole))
    return Collectives(
        found.row[keep], found.host[keep], found.kind[keep], found.elements[keep], found.group_size[keep]
    )


def _spent(
    timeline: Timeline, found: Collectives, since_ns: IntArray, until_ns: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Between two moments each: time computing, time only loading, and time without either or communication."""
    trace = timeline.trace
    work = trace.rows(*DEVICE_CATEGORIES) if not timeline.is_cpu_only else trace.rows(Category.CPU_OP)
    work = work[(timeline.kernel_class[work] != KernelClass.COMMUNICATION) & ~_is_collective_op(timeline, work)]
    computing = _spans(timeline, work)
    busy = joined(computing, _spans(timeline, np.flatnonzero((timeline.phase == Phase.DATA) & (trace.stream < 0))))
    computing_ns, busy_ns = covered_ns(computing, since_ns, until_ns), covered_ns(busy, since_ns, until_ns)
    all_ns = covered_ns(joined(busy, _spans(timeline, found.row)), since_ns, until_ns)
    return computing_ns, busy_ns - computing_ns, until_ns - since_ns - all_ns


def _is_collective_op(timeline: Timeline, rows: IntArray) -> BoolArray:
    """On the CPU, operators that communicate are no computing."""
    names = [i for i, name in enumerate(timeline.trace.names) if name.startswith(("c10d::", "record_param_comms"))]
    return is_among(timeline.trace.name[rows], names)


def _spans(timeline: Timeline, rows: IntArray) -> Spans:
    return union(timeline.trace.ts_ns[rows], timeline.trace.end_ns[rows])


def _comparable(ranks: Sequence[Rank], reported: Rank) -> tuple[Rank, ...]:
    """The ranks that communicate as the reported one does, if they are most; else all of them.

    A recording that was cut off lacks collectives of its last step, and would cost all ranks theirs.
    """
    alike = tuple(rank for rank in ranks if np.array_equal(np.sort(_keys(rank)), np.sort(_keys(reported))))
    return alike if len(alike) > 1 and 2 * len(alike) >= len(ranks) else tuple(ranks)


def _keys(rank: Rank) -> IntArray:
    """Step and kind of each collective in one number."""
    return rank.step * len(CollectiveKind) + rank.kind


def _shared(ranks: Sequence[Rank]) -> list[IntArray]:
    """For each rank the places of the collectives that all ranks have, in the same order.

    The n-th of a kind in a step is the same one everywhere. Of a kind of which the ranks do not have equally many in a
    step nothing is known (a recording that was cut off, groups of ranks), and it is left out.
    """
    keys = [_keys(rank) for rank in ranks]
    counts = [dict(zip(*np.unique(key, return_counts=True), strict=True)) for key in keys]
    same = [key for key, count in counts[0].items() if all(other.get(key) == count for other in counts)]
    places = [np.flatnonzero(np.isin(key, same)) for key in keys]
    # Streams may start two kinds in another order on another rank: what is matched is ordered as on the first.
    return [_in_order_of(places[0], keys[0], place, key) for place, key in zip(places, keys, strict=True)]


def _in_order_of(first: IntArray, first_keys: IntArray, place: IntArray, keys: IntArray) -> IntArray:
    """`place`, its n-th of each key put where `first` has its n-th."""
    found = np.empty_like(place)
    found[np.argsort(first_keys[first], kind="stable")] = place[np.argsort(keys[place], kind="stable")]
    return found


def _matrix(columns: Sequence[IntArray], places: Sequence[IntArray]) -> IntArray:
    return np.array([column[place] for column, place in zip(columns, places, strict=True)], dtype=np.int64)


def _offsets(end_ns: IntArray, kind: Int8Array) -> FloatArray:
    """How far each rank's clock is ahead of the first one's: the median over the collectives that end together."""
    together = np.flatnonzero(~is_among(kind, _ONE_WAY))
    used = together if len(together) else np.arange(len(kind))
    if not len(used):
        return np.zeros(len(end_ns))
    ahead = end_ns[:, used] - end_ns[0, used]
    return np.array([median(row) for row in ahead])


def _of_others(ranks: Sequence[Rank], reported: Rank) -> list[str]:
    return [f"rank {rank.number}: {text}" for rank in ranks if rank is not reported for text in rank.problems]


def _doubts(ranks: Sequence[Rank], compared: Sequence[Rank], shared: int) -> list[str]:
    """What somebody who reads figures of this job should know."""
    found: list[str] = []
    world_size = max(rank.world_size for rank in ranks)
    known = sorted({rank.number for rank in ranks if 0 <= rank.number < world_size})
    # The ends of each run alone: a trace may claim any number of ranks.
    missing = [(before + 1, after - 1) for before, after in pairwise([-1, *known, world_size]) if after - before > 1]
    if missing:
        found.append(f"of {world_size} ranks the job has {len(ranks)}; missing: {_joined(missing)}")
    if len(compared) < len(ranks):
        odd = [rank.number for rank in ranks if not any(rank is one for one in compared)]
        found.append(f"not compared, as they do not have the same collectives: {_listed(odd)}")
    if not shared:
        found.append("the ranks share no collective of one step: their clocks were not aligned")
    return found


def _listed(numbers: Sequence[int]) -> str:
    """`0-2, 5`."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return _joined(runs)


def _joined(runs: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)
