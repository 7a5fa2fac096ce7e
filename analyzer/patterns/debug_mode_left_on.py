"""debug-mode-left-on: a mode meant for finding bugs runs in every step.

Why it is slow: anomaly detection formats the Python stack for each operator of the forward pass and looks for NaN after
each node of the backward pass, and on a device waits for each answer. Deterministic algorithms fill all new memory with
NaN first. `gradcheck` computes gradients by differences.
Trace: `aten::isnan` with `_is_any_true` (or `any`) and `item` right under autograd's `evaluate_function`, and
`format_stack` frames in operators; `aten::fill_` inside `aten::empty`; frames of `torch/autograd/gradcheck.py`.
Edit: these operators and frames go. A fill on the CPU goes by half: what first writes new memory pays for its pages.
Gate: checks under fewer than a quarter of the nodes (somebody's own check); fills under 1 % of the step; anything in
fewer than half of the steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import distinct, is_named
from ..timeline.edit import Edit, Scale, no_rows
from ..timeline.model import Timeline
from ..timeline.python_work import frames_named
from ..timeline.select import (
    count_per_step,
    events_of,
    in_typical_step,
    is_noticeable,
    launched_by,
    outermost,
    steady,
)
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern

_NODE = "autograd::engine::evaluate_function: "
_CHECKS = ("aten::isnan", "aten::_is_any_true", "aten::any", "aten::is_nonzero", "aten::item")
_STACK = re.compile(r"traceback\.py\(\d+\): format_stack$")
_NEW = ("aten::empty", "aten::empty_strided", "aten::empty_like", "aten::resize_", "aten::new_empty")
_GRADCHECK = re.compile(r"torch/autograd/gradcheck\.py\(\d+\): grad(grad)?check$")
_LEAST_NODE_SHARE = 0.25
_NOTICEABLE_SHARE = 0.01
_CPU_FILL_LEFT = 0.5


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per mode that the steps run in."""
    checks = _nan_checks(timeline)
    if len(checks):
        stacks = outermost(timeline, frames_named(timeline, _STACK))
        yield from _candidate(
            timeline,
            np.sort(np.concatenate([checks, stacks])),
            what="autograd looks for NaN after every node",
            remedy="switching anomaly detection off",
            counted=("nan-checks", "operators that look for NaN, per step", checks),
        )
    fills = _fills(timeline)
    if is_noticeable(timeline, _cost_rows(timeline, fills), _NOTICEABLE_SHARE):
        yield from _candidate(
            timeline,
            fills,
            what="all new memory is filled first, to be deterministic",
            remedy="leaving new memory as it is",
            counted=("fills", "fills of new memory per step", fills),
            left=_CPU_FILL_LEFT if timeline.is_cpu_only else 0.0,
        )
    gradchecks = outermost(timeline, frames_named(timeline, _GRADCHECK))
    if len(gradchecks):
        yield from _candidate(
            timeline,
            gradchecks,
            what="gradients are checked against differences",
            remedy="leaving the check to a test",
            counted=("gradchecks", "gradient checks per step", gradchecks),
        )


def _candidate(
    timeline: Timeline,
    rows: IntArray,
    *,
    what: str,
    remedy: str,
    counted: tuple[str, str, IntArray],
    left: float = 0.0,
) -> Iterator[Candidate]:
    """A mode whose work is `rows`, one occurrence per step; none if it shows in few steps only."""
    steps = timeline.steps.of[rows]
    present = distinct(steps)
    if 2 * len(present) < len(timeline.steps.steady) or not len(rows):
        return
    identity, name, events = counted
    yield Candidate(
        what=what,
        remedy=remedy,
        occurrences=tuple(_occurrence(timeline, rows[steps == step], left) for step in present.tolist()),
        evidence=(
            Evidence(
                identity,
                name,
                count_per_step(timeline, events),
                "",
                events_of(timeline, in_typical_step(timeline, events)),
            ),
        ),
        probability=0.95,
    )


def _occurrence(timeline: Timeline, rows: IntArray, left: float) -> Occurrence:
    edit = Edit(scales=(Scale(rows, left),)) if left else Edit(removed_ops=rows)
    return Occurrence(int(rows[0]), edit, _cost_rows(timeline, rows))


def _cost_rows(timeline: Timeline, rows: IntArray) -> IntArray:
    """The device work of `rows`, or where they launch none the rows themselves."""
    if timeline.is_cpu_only or not len(rows):
        return rows
    launched = np.concatenate([no_rows(), *launched_by(timeline, outermost(timeline, rows))])
    return np.sort(launched) if len(launched) else rows


def _nan_checks(timeline: Timeline) -> IntArray:
    """The operators by which autograd itself looks for NaN; none where only a few nodes are looked at."""
    trace = timeline.trace
    rows = _children_of(timeline, _CHECKS, lambda name: name.startswith(_NODE))
    isnan = rows[is_named(trace, rows, lambda name: name == "aten::isnan")]
    if not len(isnan):
        return no_rows()
    nodes = steady(timeline, trace.rows_named([name for name in trace.names if name.startswith(_NODE)]))
    looked_at = distinct(timeline.tree.parent[isnan])
    return rows if len(looked_at) >= _LEAST_NODE_SHARE * len(nodes) else no_rows()


def _fills(timeline: Timeline) -> IntArray:
    """Fills inside operators that only make new memory."""
    return _children_of(timeline, ("aten::fill_",), lambda name: name in _NEW)


def _children_of(timeline: Timeline, names: Sequence[str], is_parent: Callable[[str], bool]) -> IntArray:
    """Operators of these names in the steady steps that stand directly under one whose name is right."""
    trace, tree = timeline.trace, timeline.tree
    rows = trace.rows_named(names)
    rows = steady(timeline, rows[trace.cat[rows] == Category.CPU_OP])
    parent = tree.parent[rows]
    rows, parent = rows[parent != NONE], parent[parent != NONE]
    return rows[is_named(trace, parent, is_parent)]


PATTERN = Pattern(
    code="TAP109",
    slug="debug-mode-left-on",
    title="Debugging mode left on",
    fix=FixKind.SAFE,
    find=find,
    group="data and host",
    stage=Stage.IMPLEMENTATION,
)
