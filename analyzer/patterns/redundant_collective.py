"""redundant-collective: the program reduces a few numbers among the ranks in every step.

Why it is slow: averaging a loss or an accuracy for the log is a collective like any other: all ranks wait for the last
one, in every step and once for each number, though somebody looks at it every hundredth time.
Trace: collectives of few elements that Python asks for itself (`torch.distributed.all_reduce`), in most steps.
Edit: they do not run: every so many steps instead.
Gate: the wrapper's own exchanges, those of batch norms and of a backward pass; large ones, which train on the result.
Whether the result is only logged, the source must confirm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.collectives import CollectiveKind, kind_of
from ..timeline.columns import is_among, is_named
from ..timeline.edit import Edit
from ..timeline.model import Phase, Timeline
from ..timeline.select import count_per_step, events_of, in_typical_step, inside, launched_by, outermost, steady
from ..timeline.sites import group_by_site
from ..trace.model import NONE, BoolArray, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .ddp import ddp_forwards, elements

_FEW_ELEMENTS = 1024
_KINDS = (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE, CollectiveKind.ALL_GATHER)
_CALL = re.compile(r"torch/distributed/distributed_c10d\.py\(\d+\): (all_reduce|reduce|all_gather\w*)$")
_LAYER = re.compile(r"torch/nn/modules/_functions\.py\(\d+\): |^SyncBatchNorm|batch_?norm", re.IGNORECASE)


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate for each place that reduces a few numbers in most steps."""
    operators = _operators(timeline)
    if not len(operators):
        return
    for rows in group_by_site(timeline, operators):
        if count_per_step(timeline, rows) < 1:
            continue
        calls = _calls(timeline, rows)
        yield Candidate(
            what="a few numbers are reduced among the ranks in every step",
            remedy="reducing them only now and then",
            occurrences=tuple(
                Occurrence(int(row), Edit(removed_ops=np.array([call])), _cost_rows(timeline, row, call))
                for row, call in zip(rows, calls, strict=True)
            ),
            evidence=(
                Evidence(
                    "collectives",
                    "such collectives per step",
                    count_per_step(timeline, rows),
                    "",
                    events_of(timeline, in_typical_step(timeline, rows)),
                ),
            ),
            probability=0.9,
        )


def _operators(timeline: Timeline) -> IntArray:
    """Operators of the program's own that exchange a few numbers outside of the backward pass."""
    trace = timeline.trace
    names = [i for i, name in enumerate(trace.names) if name.startswith("c10d::") and kind_of(name) in _KINDS]
    if not names:
        return np.empty(0, dtype=np.int64)
    rows = steady(timeline, np.flatnonzero(is_among(trace.name, names) & (trace.cat == Category.CPU_OP)))
    rows = outermost(timeline, rows[timeline.phase[rows] != Phase.BACKWARD])
    rows = rows[inside(timeline, rows, ddp_forwards(timeline)) == NONE]
    sizes = elements(timeline, rows)
    rows = rows[(sizes > 0) & (sizes <= _FEW_ELEMENTS)]
    return rows[~_of_layers(timeline, rows)]


def _of_layers(timeline: Timeline, rows: IntArray) -> BoolArray:
    """Which operators a layer asks for: part of the model, not of the loop round it."""
    trace, tree = timeline.trace, timeline.tree
    above = (map(trace.name_of, tree.ancestors(row)) for row in rows.tolist())
    return np.array([any(_LAYER.search(name) for name in names) for names in above], dtype=np.bool_)


def _calls(timeline: Timeline, rows: IntArray) -> IntArray:
    """For each operator the call of torch.distributed round it, which also waits; without stacks the operator."""
    trace = timeline.trace
    frames = steady(timeline, trace.rows(Category.PYTHON_FUNCTION))
    frames = outermost(timeline, frames[is_named(trace, frames, _CALL.search)])
    owner = inside(timeline, rows, frames)
    return np.where(owner != NONE, np.append(frames, NONE)[owner], rows)


def _cost_rows(timeline: Timeline, row: int, call: int) -> IntArray:
    """The exchange on the device, or the call that waits for it, whichever takes longer."""
    launched = launched_by(timeline, np.array([row]))[0]
    dur_ns = timeline.trace.dur_ns
    return launched if dur_ns[launched].sum() > dur_ns[call] else np.array([call])


PATTERN = Pattern(
    code="TAP907",
    slug="redundant-collective",
    title="Numbers are reduced in every step",
    fix=FixKind.SAFE,
    find=find,
    group="distributed",
    stage=Stage.IMPLEMENTATION,
)
