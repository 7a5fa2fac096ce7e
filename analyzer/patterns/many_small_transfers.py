"""many-small-transfers: many small copies between host and device in each step, where one would do.

Why it is slow: a copy of some kilobytes takes as long as its call, some microseconds on the host and on the device;
and from or to pageable memory the host waits for each one, so the device runs dry between them.
Trace: over ten copies in one direction per step, each under 64 KB, four or more of them from one function; copies that
read a scalar count for `host-scalar-read`.
Edit: one copy stays for each execution of the function, longer by the others' bytes at 12 GB/s and by 15 µs on the host
that gathering takes (one `stack` or `cat`); the others go with their waits.
Gate: large copies; ten or fewer; the first copies of a program.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.columns import distinct, is_named
from ..timeline.edit import Edit, Scale
from ..timeline.model import KernelClass, Timeline
from ..timeline.select import (
    count_per_step,
    device_rows,
    events_of,
    in_typical_step,
    inside,
    outer_op,
    outermost,
    us_per_step,
    value_per_step,
)
from ..timeline.sites import SiteFinder, group_by_site
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern

_SMALL_BYTES = 64 << 10
_MANY = 10
_TOGETHER = 4
"""Copies of one function in one step that can be gathered."""
_BYTES_PER_NS = 12.0
_GATHER_NS = 15_000.0
_SCALAR = ("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::nonzero", "aten::equal")


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site that makes many small copies."""
    for kind, direction in ((KernelClass.MEMCPY_DTOH, "to the host"), (KernelClass.MEMCPY_HTOD, "to the device")):
        copies = _small_copies(timeline, kind)
        if count_per_step(timeline, copies) > _MANY:
            yield from _candidates(timeline, copies, direction)


def _small_copies(timeline: Timeline, kind: KernelClass) -> IntArray:
    """Copies of one direction whose size is known and small and that an operator launched."""
    rows = device_rows(timeline)
    size = timeline.trace.size_bytes[rows]
    rows = rows[(timeline.kernel_class[rows] == kind) & (size != NONE) & (size < _SMALL_BYTES)]
    rows = rows[(timeline.launches.runtime[rows] != NONE) & (timeline.launches.op[rows] != NONE)]
    return rows


def _candidates(timeline: Timeline, copies: IntArray, direction: str) -> Iterator[Candidate]:
    trace = timeline.trace
    hosts = distinct(np.array([outer_op(timeline, row) for row in timeline.launches.runtime[copies].tolist()]))
    hosts = hosts[(trace.cat[hosts] == Category.CPU_OP) & ~is_named(trace, hosts, lambda name: name in _SCALAR)]
    hosts = outermost(timeline, hosts)
    owner = inside(timeline, timeline.launches.runtime[copies].astype(np.int64), hosts)
    finder = SiteFinder(timeline)
    for group in group_by_site(timeline, hosts):
        if count_per_step(timeline, group) < _TOGETHER:
            continue
        runs: dict[tuple[int | str, int], list[int]] = {}
        for host in group.tolist():
            runs.setdefault((finder.function(host), int(timeline.steps.of[host])), []).append(host)
        occurrences = [
            _occurrence(timeline, np.array(run), copies, owner, hosts) for run in runs.values() if len(run) >= _TOGETHER
        ]
        if not occurrences:
            continue
        sent = np.sort(np.concatenate([one.cost_rows for one in occurrences]))
        yield Candidate(
            what=f"many small copies {direction} are made one by one",
            remedy="gathering them into one copy",
            occurrences=tuple(occurrences),
            evidence=(
                Evidence(
                    "copies",
                    "small copies per step",
                    count_per_step(timeline, sent),
                    "",
                    events_of(timeline, in_typical_step(timeline, sent)),
                ),
                Evidence("size", "sent per step", round(_bytes_per_step(timeline, sent) / 1024, 2), "KB"),
            ),
            cost_us_per_step=us_per_step(timeline, group),
            probability=0.85,
        )


def _bytes_per_step(timeline: Timeline, copies: IntArray) -> float:
    return value_per_step(timeline, copies, timeline.trace.size_bytes[copies])


def _occurrence(timeline: Timeline, run: IntArray, copies: IntArray, owner: IntArray, hosts: IntArray) -> Occurrence:
    """The copies of one execution of a function: the first stays, and takes the others' bytes along."""
    trace = timeline.trace
    mine = [copies[owner == place] for place in np.searchsorted(hosts, run).tolist()]
    first, others = mine[0], np.concatenate(mine[1:])
    first_ns = max(float(trace.dur_ns[first].sum()), 1.0)
    more_ns = float(trace.size_bytes[others].sum()) / _BYTES_PER_NS
    host_ns = max(float(trace.dur_ns[run[0]]), 1.0)
    scales = (
        Scale(first, round(1.0 + more_ns / first_ns, 3)),
        Scale(run[:1], round(1.0 + _GATHER_NS / host_ns, 3)),
    )
    return Occurrence(int(run[0]), Edit(scales=scales, removed_ops=run[1:]), np.concatenate(mine))


PATTERN = Pattern(
    code="TAP207",
    slug="many-small-transfers",
    title="Many small copies in a row",
    fix=FixKind.UNSAFE,
    find=find,
    needs=("device", "launches"),
    group="transfers and synchronisation",
)
