"""buffers-broadcast: every step sends the model's buffers from rank 0 to all ranks.

Why it is slow: DistributedDataParallel does so before each forward pass. It flattens the buffers (three for each batch
norm), broadcasts them, waits, and copies them back one by one: hundreds of small operators before the model may begin.
Trace: in `DistributedDataParallel.forward`, before the model: `flatten_dense_tensors`, `c10d::broadcast_`,
`unflatten_dense_tensors` and a `copy_` for each buffer; with stacks the frame `_sync_buffers`.
Edit: all of that does not run (`broadcast_buffers=False`).
Gate: none beside the saving: it falls where the host is ahead and the broadcast short, and, where all ranks' traces are
there, by what they wait for one another. Whether the ranks' running statistics may differ, only a person knows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import is_among, is_named
from ..timeline.edit import Edit, Scale
from ..timeline.model import Timeline
from ..timeline.select import count_per_step, events_of, in_typical_step, inside, launched_by, outermost, steady
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .ddp import ddp_forwards, wrapper_frames
from .occurrences import by_site

_BROADCAST = "c10d::broadcast_"
_PARTS = frozenset(
    {
        _BROADCAST,
        "aten::flatten_dense_tensors",
        "aten::unflatten_dense_tensors",
        "aten::copy_",
        "aten::_foreach_copy_",
        "record_param_comms",
        "nccl:broadcast",
    }
)
"""What happens between the start of the wrapper's forward and the model's."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate for each place that calls a wrapped model, if the buffers are sent there."""
    broadcasts = timeline.trace.rows_named((_BROADCAST,))
    forwards = ddp_forwards(timeline)
    if not len(broadcasts) or not len(forwards):
        return
    occurrences = (
        Occurrence(int(forward), _edit(timeline, rows), _cost_rows(timeline, rows))
        for forward, rows in zip(forwards, _parts(timeline, forwards), strict=True)
        if len(rows)
    )
    for group in by_site(timeline, occurrences):
        sent = steady(timeline, broadcasts)
        yield Candidate(
            what="the buffers are sent to all ranks before each forward pass",
            remedy="leaving each rank its own buffers",
            occurrences=group,
            evidence=(
                Evidence(
                    "broadcasts",
                    "broadcasts per step",
                    count_per_step(timeline, sent),
                    "",
                    events_of(timeline, in_typical_step(timeline, sent)),
                ),
                Evidence("operators", "operators they take per step", _operators(timeline, group), ""),
            ),
        )


def _parts(timeline: Timeline, forwards: IntArray) -> list[IntArray]:
    """For each forward call, the host rows that send its buffers; none where it sends none."""
    frames = wrapper_frames(timeline, "_sync_buffers")
    if len(frames):
        owner = inside(timeline, frames, forwards)
        return [frames[owner == i] for i in range(len(forwards))]
    trace = timeline.trace
    rows = steady(timeline, trace.rows(Category.CPU_OP))
    rows = outermost(timeline, rows[inside(timeline, rows, forwards) != NONE])
    owner = inside(timeline, rows, forwards)
    is_part = is_named(trace, rows, lambda name: name in _PARTS)
    is_broadcast = is_among(rows, trace.rows_named((_BROADCAST,)))
    return [
        _until_the_model(rows[owner == i], is_part[owner == i], is_broadcast[owner == i]) for i in range(len(forwards))
    ]


def _until_the_model(rows: IntArray, is_part: np.ndarray, is_broadcast: np.ndarray) -> IntArray:
    """The operators of one forward call before the first that sends nothing; none unless they broadcast."""
    first = int(np.argmin(is_part)) if not is_part.all() else len(rows)
    return rows[:first] if is_broadcast[:first].any() else rows[:0]


def _edit(timeline: Timeline, rows: IntArray) -> Edit:
    """None of it runs; but the ranks that wait for another one here will wait for it at their next collective."""
    job = timeline.job
    dur_ns = timeline.trace.dur_ns
    launched = np.sort(np.concatenate(launched_by(timeline, rows)))
    start, end = int(timeline.trace.ts_ns[rows].min()), int(timeline.trace.end_ns[rows].max())
    if job is None or not len(job.row):
        return Edit(removed_ops=rows)
    begun = timeline.trace.ts_ns[job.row]
    here = is_among(job.row, launched) | ((begun >= start) & (begun <= end) & timeline.is_cpu_only)
    waited_ns = (job.arrival_ns.max(axis=0) - job.arrival_ns[job.reported])[here].max(initial=0.0)
    spent_ns = int(dur_ns[rows].sum() if timeline.is_cpu_only else dur_ns[job.row[here]].sum())
    if waited_ns <= 0.0 or not spent_ns:
        return Edit(removed_ops=rows)
    kept = min(float(waited_ns) / spent_ns, 1.0)
    if timeline.is_cpu_only:
        return Edit(scales=(Scale(rows, kept),))
    others = launched[~is_among(launched, job.row[here])]
    return Edit(scales=(Scale(job.row[here], kept), Scale(np.sort(np.append(rows, others)), 0.0)))


def _cost_rows(timeline: Timeline, rows: IntArray) -> IntArray:
    """The operators on the host or their device work, whichever takes longer."""
    launched = np.sort(np.concatenate(launched_by(timeline, rows)))
    dur_ns = timeline.trace.dur_ns
    return launched if dur_ns[launched].sum() > dur_ns[rows].sum() else rows


def _operators(timeline: Timeline, group: tuple[Occurrence, ...]) -> float:
    rows = timeline.trace.rows(Category.CPU_OP)
    hosts = np.sort(np.concatenate([one.edit.removed_ops for one in group]))
    return count_per_step(timeline, rows[inside(timeline, rows, hosts) != NONE])


PATTERN = Pattern(
    code="TAP908",
    slug="buffers-broadcast",
    title="Buffers are broadcast in every step",
    fix=FixKind.UNSAFE,
    find=find,
    group="distributed",
    stage=Stage.HARDWARE,
)
