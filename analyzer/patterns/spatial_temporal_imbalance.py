"""spatial-temporal-imbalance: in a net over time, one axis' or pathway's convolutions take far more time than work.

Why it is slow: kernels along one axis (1x3x3, 3x1x1) and the thin, long feature maps of a fast pathway do little work
for each byte, and the libraries' kernels for them are far from the rate of the others. The net pays for that part
according to its time, not its FLOPs. On one core of a CPU (torch 2.13) a 1x3x3 convolution of 8 channels over 32 frames
ran at 4 GFLOP/s, those of 32 and 64 channels at 13 to 20.
Trace: 3-D convolutions by the axes of their kernels, and by pathway (frames per clip, where convolutions over different
numbers of frames alternate): the share of each in time against its share of the FLOPs.
Edit: the part takes the time that its FLOPs would take at the rate of the rest, not below 0.3 of its own. That is the
most that moving its work elsewhere can give.
Gate: nets without 3-D convolutions; one part only; parts of under a quarter of the convolutions' time, or with less
than twice the share of time than of FLOPs; 1x1x1 convolutions, which are bound by memory by nature.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.convolution_calls import ConvCalls, ConvShape, backward_rows, work_ns, work_rows
from ..timeline.edit import Edit, Scale, no_rows
from ..timeline.family import Family
from ..timeline.model import Timeline
from ..timeline.select import count_per_step, events_of, in_typical_step, is_noticeable
from ..trace.model import IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site
from .volumes import volume_convolutions

_MIN_TIME_SHARE = 0.25
_IMBALANCE = 2.0
_LEAST_FACTOR = 0.3
_ALTERNATIONS = 4
"""Changes between numbers of frames per step, from which they are pathways side by side, not one net that shrinks."""
_POINTWISE = "1x1x1"


@dataclass(frozen=True, slots=True)
class AxisShare:
    """One row of the table: the convolutions of one kind, forward and backward, in all steady steps."""

    name: str
    calls: ConvCalls
    time_pct: float
    """Of the time of all 3-D convolutions."""
    flops_pct: float
    gflop_per_s: float


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate for each site of the part that is out of balance."""
    calls = volume_convolutions(timeline)
    calls = calls.chosen(np.isfinite(calls.flops) & (calls.time_ns > 0))
    if not is_noticeable(timeline, work_rows(timeline, calls.rows)):
        return
    for table in (axis_table(timeline, calls), pathway_table(timeline, calls)):
        worst = max(table, key=lambda row: row.time_pct / max(row.flops_pct, 0.1), default=None)
        if worst is not None and len(table) > 1 and _is_out_of_balance(worst):
            yield from _candidates(timeline, worst, table)
            return


def axis_table(timeline: Timeline, calls: ConvCalls) -> list[AxisShare]:
    """Shares by the axes that kernels reach along; without 1x1x1."""
    kinds = [_axes(shape) for shape in calls.shapes]
    return _table(timeline, calls, kinds, [kind for kind in dict.fromkeys(kinds) if kind != _POINTWISE])


def pathway_table(timeline: Timeline, calls: ConvCalls) -> list[AxisShare]:
    """Shares by pathway: frames per clip, where they alternate within a step; empty where there are no pathways."""
    calls = calls.chosen([len(shape.data) >= 3 for shape in calls.shapes])
    frames = [shape.data[-3] for shape in calls.shapes]
    changes = sum(one != other for one, other in pairwise(frames))
    if changes < _ALTERNATIONS * len(timeline.steps.steady):
        return []
    kinds = [f"{count}-frame" for count in frames]
    return _table(timeline, calls, kinds, list(dict.fromkeys(kinds)))


def _axes(shape: ConvShape) -> str:
    """The kernel as it is named: "1x3x3"."""
    return "x".join(map(str, shape.kernel))


def _table(timeline: Timeline, calls: ConvCalls, kinds: list[str], wanted: list[str]) -> list[AxisShare]:
    parts = [(kind, calls.chosen([one == kind for one in kinds])) for kind in wanted]
    times = [float(part.time_ns.sum()) + _backward_ns(timeline, part) for _, part in parts]
    works = [float(part.flops.sum()) * (1 + 2 * _learns(timeline, part)) for _, part in parts]
    all_time, all_work = max(sum(times), 1.0), max(sum(works), 1.0)
    return [
        AxisShare(kind, part, 100 * time / all_time, 100 * work / all_work, work / max(time, 1.0))
        for (kind, part), time, work in zip(parts, times, works, strict=True)
    ]


def _backward_ns(timeline: Timeline, calls: ConvCalls) -> float:
    after = np.sort(np.concatenate([no_rows(), *backward_rows(timeline, calls)]))
    return float(work_ns(timeline, after).sum()) if len(after) else 0.0


def _learns(timeline: Timeline, calls: ConvCalls) -> bool:
    return any(len(rows) for rows in backward_rows(timeline, calls))


def _is_out_of_balance(row: AxisShare) -> bool:
    return row.time_pct >= 100 * _MIN_TIME_SHARE and row.time_pct >= _IMBALANCE * row.flops_pct


def _candidates(timeline: Timeline, worst: AxisShare, table: list[AxisShare]) -> Iterator[Candidate]:
    rest = [row for row in table if row is not worst]
    # Shares of time and work of the rest give its rate relative to the worst row's.
    share = (worst.flops_pct / worst.time_pct) / (
        sum(row.flops_pct for row in rest) / max(sum(row.time_pct for row in rest), 0.1)
    )
    factor = round(max(share, _LEAST_FACTOR), 2)
    occurrences = [
        _occurrence(timeline, row, factor, after)
        for row, after in zip(worst.calls.rows.tolist(), backward_rows(timeline, worst.calls), strict=True)
    ]
    evidence = tuple(
        Evidence(
            f"axis-{number}",
            f"{row.name} convolutions: {row.time_pct:.0f} % of the time, {row.flops_pct:.0f} % of the FLOPs, at",
            round(row.gflop_per_s, 2),
            "GFLOP/s",
        )
        for number, row in enumerate(sorted(table, key=lambda row: -row.time_pct))
    )
    for group in by_site(timeline, occurrences):
        rows = np.array([occurrence.anchor for occurrence in group])
        count = Evidence(
            "convolutions",
            f"{worst.name} convolutions of this place per step",
            count_per_step(timeline, rows),
            "",
            events_of(timeline, in_typical_step(timeline, rows)),
        )
        yield Candidate(
            what=f"the {worst.name} convolutions take far more than their share of the work",
            remedy="moving their channels or frames to the other axes",
            occurrences=group,
            evidence=(*evidence, count),
            probability=0.7,
        )


def _occurrence(timeline: Timeline, row: int, factor: float, after: IntArray) -> Occurrence:
    rows = np.sort(np.concatenate([work_rows(timeline, np.array([row])), work_rows(timeline, after)]))
    return Occurrence(row, Edit(scales=(Scale(rows, factor),)), rows)


PATTERN = Pattern(
    code="TAP003",
    slug="spatial-temporal-imbalance",
    title="One axis out of balance",
    fix=FixKind.ADVICE,
    find=find,
    needs=("shapes",),
    group="vision tasks",
    stage=Stage.ARCHITECTURE,
    families=frozenset({Family.VIDEO}),
)
