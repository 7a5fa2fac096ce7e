"""redundant-copy: a tensor is copied, and what reads the copy could as well read the tensor.

Why it is slow: a copy reads and writes the whole tensor, and while gradients are kept both stay in memory.
Trace: `aten::clone` called by the program itself; `aten::contiguous` that really copies, and behind it an operator that
takes a part of the result alone.
Edit: the clone goes (its backward pass hands the gradient on and copies nothing); of a part, only what is taken has to
be copied.
Gate: copies that operators and the optimizer make for themselves; `contiguous` that copies nothing, and one that the
next operator needs; small shares of the step. Whether a clone is needed the source must tell.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.columns import is_among
from ..timeline.edit import Edit, Scale
from ..timeline.model import Phase, Timeline
from ..timeline.op_inputs import tensor_bytes
from ..timeline.select import (
    count_per_step,
    events_of,
    in_typical_step,
    is_noticeable,
    launched_by,
    steady,
    value_per_step,
)
from ..timeline.sites import group_by_site
from ..timeline.transfers import outermost_named
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern

_CLONE, _CONTIGUOUS = "aten::clone", "aten::contiguous"
_PARTS = ("aten::select", "aten::slice", "aten::narrow")
_SMALL_PART = 0.5
_NOTICEABLE_SHARE = 0.003


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site that copies."""
    clones = _forward(timeline, outermost_named(timeline, (_CLONE,)))
    parts = dict(_copied_for_a_part(timeline))
    hosts = np.sort(np.concatenate([clones, np.array(list(parts), dtype=np.int64)]))
    for group in group_by_site(timeline, hosts):
        occurrences = tuple(_occurrence(timeline, row, parts.get(row, 0.0)) for row in group.tolist())
        cost_rows = np.sort(np.concatenate([occurrence.cost_rows for occurrence in occurrences]))
        if not is_noticeable(timeline, cost_rows, _NOTICEABLE_SHARE):
            continue
        is_part = bool(is_among(group, list(parts)).any())
        sizes = np.array([tensor_bytes(timeline.trace.inputs_of(row)) for row in group.tolist()])
        yield Candidate(
            what="a tensor is copied whole to take a part of it" if is_part else "a tensor is copied without need",
            remedy="copying the part alone" if is_part else "reading the tensor itself",
            occurrences=occurrences,
            evidence=(
                Evidence(
                    "copies",
                    "copies per step",
                    count_per_step(timeline, group),
                    "",
                    events_of(timeline, in_typical_step(timeline, group)),
                ),
                Evidence("size", "copied per step", round(value_per_step(timeline, group, sizes) / 1e6, 2), "MB"),
            ),
            probability=0.7,
        )


def _forward(timeline: Timeline, rows: IntArray) -> IntArray:
    """Those that neither the backward pass nor the optimizer runs."""
    return rows[(timeline.forward_op[rows] == NONE) & (timeline.phase[rows] != Phase.OPTIMIZER)]


def _copied_for_a_part(timeline: Timeline) -> Iterator[tuple[int, float]]:
    """Copies to a dense layout, directly behind which a small part of the result is taken, with that part's share."""
    copies = _forward(timeline, outermost_named(timeline, (_CONTIGUOUS,)))
    trace, tree = timeline.trace, timeline.tree
    if not len(copies) or not len(trace.rows_named(_PARTS)):
        return
    rows = steady(timeline, trace.rows(Category.CPU_OP))
    parent = tree.parent[rows]
    top = rows[(parent == NONE) | (tree.op[np.maximum(parent, 0)] == NONE)]
    top = top[np.lexsort((trace.ts_ns[top], trace.thread[top]))]
    at = np.flatnonzero(is_among(top, copies))
    at = at[at + 1 < len(top)]
    is_part = is_among(top[at + 1], trace.rows_named(_PARTS)) & (trace.thread[top[at]] == trace.thread[top[at + 1]])
    for copy, part in zip(top[at[is_part]].tolist(), top[at[is_part] + 1].tolist(), strict=True):
        share = _share(timeline, copy, part)
        if share <= _SMALL_PART and len(tree.children(copy)):
            yield copy, share


def _share(timeline: Timeline, copy: int, part: int) -> float:
    """How much of the copy's elements an operator takes; 1 where that was not recorded."""
    trace = timeline.trace
    inputs = trace.inputs_of(part)
    shape = inputs.shape(0)
    is_select = trace.name_of(part) == "aten::select"
    try:
        axis, start, last = (int(inputs.value(argument) or "1") for argument in range(1, 4))
    except ValueError:
        return 1.0
    if not inputs.value(1) or shape != trace.inputs_of(copy).shape(0) or not -len(shape) <= axis < len(shape):
        return 1.0
    length = max(shape[axis], 1)
    taken = 1 if is_select else last if trace.name_of(part) == "aten::narrow" else min(last, length) - max(start, 0)
    return min(taken / length, 1.0) if taken > 0 else 1.0


def _occurrence(timeline: Timeline, row: int, share: float) -> Occurrence:
    """`share`: of a copy for a part; 0 where the whole copy can go."""
    host = np.array([row])
    (launched,) = launched_by(timeline, host)
    cost_rows = host if timeline.is_cpu_only else launched
    edit = Edit(scales=(Scale(np.append(launched, host), share),)) if share else Edit(removed_ops=host)
    return Occurrence(row, edit, cost_rows)


PATTERN = Pattern(
    code="TAP209",
    slug="redundant-copy",
    title="Copy without need",
    fix=FixKind.SAFE,
    find=find,
    group="transfers and synchronisation",
)
