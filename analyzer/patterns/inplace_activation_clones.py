"""inplace-activation-clones: an in-place activation whose backward needs its input, so autograd copies it first.

Why it is slow: `inplace=True` is meant to save memory, but the backward of SiLU, Hardswish, Mish, ReLU6, Hardtanh,
Hardsigmoid and Threshold needs the input that is about to be overwritten. Autograd keeps a clone of it: a whole pass
over the tensor and no byte saved. ReLU, LeakyReLU, ELU and their kin need their output alone and clone nothing.
Trace: `aten::clone` inside, or just before, the in-place operator.
Edit: the clone goes. On the CPU 0.3 of it stays: the operator out of place writes memory that is new to the process.
Measured with torch 2.13 (one thread, 1-100 MB), in place less out of place was 0.3-1.2 of the clone's time for
Hardswish, Mish and ReLU6, and 0.5-3.6 for SiLU.
Gate: in-place activations without a clone (no gradients, or the ReLU family).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.edit import Edit, Scale
from ..timeline.model import Timeline
from ..timeline.select import count_per_step, events_of, in_typical_step, launched_by, ops_named
from ..timeline.sites import group_by_site
from ..trace.model import NONE, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern

_ACTIVATIONS = (
    "aten::silu_",
    "aten::hardswish_",
    "aten::mish_",
    "aten::hardtanh_",
    "aten::relu6_",
    "aten::hardsigmoid_",
    "aten::threshold_",
)
_CLONE = "aten::clone"
_CPU_LEFT = 0.3


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site whose in-place activation is preceded by a clone of its input."""
    activations = ops_named(timeline, _ACTIVATIONS)
    if not len(activations):
        return
    clone = np.array([_clone(timeline, row) for row in activations.tolist()], dtype=np.int64)
    clone_of = dict(zip(activations[clone != NONE].tolist(), clone[clone != NONE].tolist(), strict=True))
    for group in group_by_site(timeline, np.array(sorted(clone_of), dtype=np.int64)):
        rows = np.array([clone_of[row] for row in group.tolist()], dtype=np.int64)
        names = sorted({timeline.trace.name_of(row) for row in group.tolist()})
        yield Candidate(
            what="an in-place activation makes autograd copy its input first",
            remedy="the activation out of place",
            occurrences=tuple(
                _occurrence(timeline, anchor, row) for anchor, row in zip(group.tolist(), rows.tolist(), strict=True)
            ),
            evidence=(
                Evidence(
                    "clones",
                    "clones before in-place activations, per step",
                    count_per_step(timeline, rows),
                    "",
                    events_of(timeline, in_typical_step(timeline, np.sort(rows))),
                ),
                Evidence("operator", "in-place operator", ", ".join(names), ""),
            ),
            probability=0.98,
        )


def _clone(timeline: Timeline, row: int) -> int:
    """The clone that autograd made for an in-place operator: its child, or its neighbour before; NONE if none.

    A clone that the program asked for lies, in a trace with stacks, in a call of its own: that is no neighbour.
    """
    trace, tree = timeline.trace, timeline.tree
    inner = tree.children(row)
    for child in inner.tolist():
        if trace.name_of(child) == _CLONE:
            return child
    parent = int(tree.parent[row])
    if parent == NONE:
        return NONE
    siblings = tree.children(parent)
    at = int(np.searchsorted(siblings, row))
    before = int(siblings[at - 1]) if at else NONE
    if before == NONE or trace.name_of(before) != _CLONE:
        return NONE
    size = trace.inputs_of(row).shape(0)
    return before if size and size == trace.inputs_of(before).shape(0) else NONE


def _occurrence(timeline: Timeline, anchor: int, clone: int) -> Occurrence:
    rows: IntArray = np.array([clone], dtype=np.int64)
    if timeline.is_cpu_only:
        return Occurrence(anchor, Edit(scales=(Scale(rows, _CPU_LEFT),)), rows)
    return Occurrence(anchor, Edit(removed_ops=rows), launched_by(timeline, rows)[0])


PATTERN = Pattern(
    code="TAP703",
    slug="inplace-activation-clones",
    title="In-place activation copies its input",
    fix=FixKind.SAFE,
    find=find,
    needs=("launches",),
    group="pointwise and operators",
)
