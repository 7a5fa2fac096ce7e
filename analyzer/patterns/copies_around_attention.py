"""copies-around-attention: queries, keys and values are made contiguous before a fused call that takes any strides.

Why it is slow: each copy reads and writes a whole tensor, and the backward pass copies again; the fused kernels read
heads where they lie, as long as the last dimension is dense.
Trace: `contiguous` (or `clone`) that really copies, on a tensor of the size of the queries, keys or values, between the
projections and a fused call.
Edit: the copies go, with their part of the backward pass. On the CPU a fused call without them takes 0.5 to 0.9 of the
time with them (torch 2.13, one thread; the copies alone 0.04 to 0.3), so nothing is added to the call.
Gate: attention in separate passes, whose products would make the copies themselves; copies that change the type; inputs
whose last dimension is not dense.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from ..findings import Evidence
from ..timeline.attention_backends import FUSED, Backend
from ..timeline.attention_calls import AttentionCall, attention_calls
from ..timeline.attention_parts import Part
from ..timeline.edit import Edit
from ..timeline.model import Timeline
from ..timeline.select import backward_of, backward_ops, count_per_step, events_of, in_typical_step, launched_by
from ..trace.model import IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site

_COPIES = frozenset({"aten::contiguous", "aten::clone"})
_FUSED = frozenset({Backend.FLASH, Backend.EFFICIENT, Backend.CUDNN, Backend.TRITON, Backend.CK, Backend.OTHER})


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that copies what it attends to."""
    if not len(timeline.trace.rows_named(("aten::contiguous", "aten::clone"))) or not _has_fused(timeline):
        return
    copied: list[IntArray] = []
    for call in attention_calls(timeline):
        if call.backend in _FUSED and len(copies := _copies(timeline, call)):
            copied.append(copies)
    of_anchor = {int(rows[0]): rows for rows in copied}
    backward = backward_ops(timeline)
    for occurrences in by_site(timeline, (_occurrence(timeline, rows, backward) for rows in copied)):
        rows = np.sort(np.concatenate([of_anchor[one.anchor] for one in occurrences]))
        sizes = timeline.trace.inputs_of(int(rows[0])).shape(0)
        yield Candidate(
            what="tensors are copied before fused attention",
            remedy="passing them as they are",
            occurrences=occurrences,
            evidence=(
                Evidence(
                    "copies",
                    "copies per step",
                    count_per_step(timeline, rows),
                    "",
                    events_of(timeline, in_typical_step(timeline, rows)),
                ),
                Evidence("size", "size of each", "x".join(map(str, sizes)), "elements"),
            ),
            probability=0.9,
        )


def _has_fused(timeline: Timeline) -> bool:
    return len(timeline.trace.rows_named(FUSED)) > 0


def _copies(timeline: Timeline, call: AttentionCall) -> IntArray:
    """Copies before a call that are as large as one of its operands."""
    trace, tree = timeline.trace, timeline.tree
    sizes = {prod(dims) for dims in (call.query, call.key, call.value) if dims}
    before = (call.ops < call.core[0]) & (call.part == Part.COPIES)
    found = [
        row
        for row in call.ops[before].tolist()
        if trace.name_of(row) in _COPIES
        and (len(tree.children(row)) > 0 or trace.name_of(row) == "aten::clone")
        and prod(trace.inputs_of(row).shape(0)) in sizes
        and trace.inputs_of(row).stride(0)[-1:] in ((), (1,))
    ]
    return np.array(found, dtype=np.int64)


def _occurrence(timeline: Timeline, copies: IntArray, backward: IntArray) -> Occurrence:
    rows = np.sort(np.concatenate([copies, *backward_of(timeline, copies, backward)]))
    cost = rows if timeline.is_cpu_only else np.concatenate(launched_by(timeline, rows))
    return Occurrence(int(copies[0]), Edit(removed_ops=rows), cost)


PATTERN = Pattern(
    code="TAP604",
    slug="copies-around-attention",
    title="Copies before fused attention",
    fix=FixKind.SAFE,
    find=find,
    needs=("shapes",),
    group="attention_bottleneck",
)
