"""data-dependent-shape: an operator whose result's size depends on the data makes the host wait for the device.

Why it is slow: the host must know how many elements there are before it can allocate the result, so it waits for
everything queued, and the device runs dry meanwhile.
Trace: `aten::nonzero`, `masked_select`, `unique`, `repeat_interleave` (alone, or inside `aten::index` and
`aten::index_put_` with a boolean mask) with a synchronisation inside.
Edit: the wait goes.
Gate: `x[mask] = scalar` becomes a masked fill and waits for nothing; reads after which the device never idles; the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..timeline.columns import distinct
from ..timeline.model import Timeline
from ..timeline.select import outer_op, outermost, steady
from .base import Candidate, FixKind, Pattern
from .waiting import waiting_candidates

_SIZED_BY_DATA = (
    "aten::nonzero",
    "aten::nonzero_numpy",
    "aten::masked_select",
    "aten::_unique",
    "aten::_unique2",
    "aten::unique_dim",
    "aten::unique_consecutive",
    "aten::repeat_interleave",
)


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site."""
    if timeline.is_cpu_only:
        return
    rows = steady(timeline, timeline.trace.rows_named(_SIZED_BY_DATA))
    hosts = distinct(np.array([outer_op(timeline, row) for row in rows.tolist()], dtype=np.int64))
    yield from waiting_candidates(
        timeline,
        outermost(timeline, hosts),
        what="the host waits to learn the size of a result",
        remedy="an operator of fixed size",
        counted="operators of data-dependent size per step",
    )


PATTERN = Pattern(
    code="TAP205",
    slug="data-dependent-shape",
    title="Result size depends on device data",
    fix=FixKind.SAFE,
    find=find,
    needs=("device", "launches"),
    group="transfers and synchronisation",
)
