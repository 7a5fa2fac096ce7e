"""metric-on-host: a metric is worked out on the host in every step, while the device has nothing to do.

Why it is slow: predictions and labels are brought to the host, and numpy, scikit-learn or plain Python count there what
one `bincount` counts on the device; or a metric object works its value out from all that it has seen in every step,
though only the last value is wanted.
Trace: in the steady steps, outside data loading, a function that takes tensors to numpy (or calls numpy behind one that
does), a frame of a metric library, or a `compute` of a metric, with the time that its Python and numpy take.
Edit: that time goes, but for 5 ns a label, and the host does not wait for the labels. Measured on the CPU with 65,536
labels of 12 classes: twelve times twelve comparisons in numpy 13.9 ms, `torch.bincount` 0.30. Of a metric object that
updates and computes, one update stays.
Gate: under 0.5 % of the step; functions that run in few of the steps; data loading. The source must read as a metric.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

import numpy as np

from ..findings import Evidence
from ..timeline.columns import is_among, is_named
from ..timeline.edit import Edit, Scale
from ..timeline.model import Phase, Timeline
from ..timeline.python_work import frames_named, is_within_step
from ..timeline.select import events_of, in_typical_step, inside, outermost, steady
from ..timeline.sites import group_by_site, is_library_frame
from ..timeline.transfers import waits_in
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern

_TO_HOST = re.compile(r"^<built-in method (numpy|cpu|tolist) of Tensor")
_NUMPY = re.compile(r"(^|/)numpy/|^<built-in (method|function) .*numpy")
_LIBRARY = re.compile(
    r"(^|/)(sklearn/(metrics|utils)|pycocotools|torchmetrics|torcheval|ignite/metrics)/.*\.py\(\d+\): "
)
_COMPUTE = re.compile(r"\.py\(\d+\): compute$")
_UPDATE = re.compile(r"\.py\(\d+\): update$")
_HANDED_OVER = re.compile(r"aten::(detach|to|_to_copy|resolve_conj)$")
"""What `.cpu()` and `.numpy()` run."""
_LABEL_NS = 5.0
"""Counting one pair of labels with `bincount` on one CPU core."""
_NOTICEABLE_SHARE = 0.005
_LEAST_SHARE_OF_STEPS = 0.5
"""A function that runs in a smaller share of the steps is meant to run now and then."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that works out metrics on the host."""
    saved_ns = {row: saved for row, saved in _costs(timeline) if saved > 0}
    rows = np.array(sorted(saved_ns), dtype=np.int64)
    if not len(rows):
        return
    waits = dict(zip(rows.tolist(), waits_in(timeline, rows), strict=True))
    steps = timeline.steps
    for group in group_by_site(timeline, rows):
        saved_us = sum(saved_ns[row] for row in group.tolist()) / 1000.0 / len(steps.steady)
        in_steps = len(set(steps.of[group].tolist()))
        if saved_us < _NOTICEABLE_SHARE * timeline.step_us or in_steps < _LEAST_SHARE_OF_STEPS * len(steps.steady):
            continue
        yield Candidate(
            what="a metric is worked out on the host in every step",
            remedy="counting on the device and reading the result at the end",
            occurrences=tuple(_occurrence(timeline, row, saved_ns[row], waits[row]) for row in group.tolist()),
            evidence=(
                Evidence("host", "Python and numpy time of it per step", round(saved_us / 1000, 3), "ms"),
                Evidence(
                    "runs",
                    "times it runs per step",
                    round(len(group) / len(steps.steady), 2),
                    "",
                    events_of(timeline, in_typical_step(timeline, group)),
                ),
            ),
            cost_us_per_step=saved_us,
            probability=0.8,
        )


def _occurrence(timeline: Timeline, row: int, saved_ns: float, waits: IntArray) -> Occurrence:
    whole_ns = max(float(timeline.trace.dur_ns[row]), 1.0)
    scale = Scale(np.array([row]), round(max(1.0 - saved_ns / whole_ns, 0.0), 4))
    return Occurrence(row, Edit(scales=(scale,), unsynced=waits), np.array([row]))


def _costs(timeline: Timeline) -> Iterator[tuple[int, float]]:
    """Frames that work out metrics, not overlapping, each with the host time that would go."""
    library = outermost(timeline, _in_steps(timeline, frames_named(timeline, _LIBRARY)))
    computes = outermost(timeline, _in_steps(timeline, frames_named(timeline, _COMPUTE)))
    computes = computes[inside(timeline, computes, library) == NONE]
    updates = frames_named(timeline, _UPDATE)
    for row in library.tolist():
        yield row, _beyond_update_ns(timeline, row, updates)
    for row in computes.tolist():
        yield row, float(timeline.trace.dur_ns[row])
    taken = outermost(timeline, np.concatenate([library, computes]))
    numeric = _numeric_functions(timeline)
    numeric = numeric[inside(timeline, numeric, taken) == NONE]
    ops = outermost(timeline, steady(timeline, timeline.trace.rows(Category.CPU_OP)))
    owner = inside(timeline, ops, numeric)
    for place, row in enumerate(numeric.tolist()):
        labels = _labels(timeline, ops[owner == place])
        yield row, _own_ns(timeline, row) - _LABEL_NS * labels


def _own_ns(timeline: Timeline, row: int) -> float:
    """Time that a function spends itself, in numpy and in built-in functions that are not torch's."""
    tree, trace = timeline.tree, timeline.trace
    children = tree.children(row)
    is_own = is_named(trace, children, _is_plain) & (trace.cat[children] == Category.PYTHON_FUNCTION)
    return float(tree.self_ns[row] + trace.dur_ns[children[is_own]].sum())


def _is_plain(name: str) -> bool:
    is_builtin = name.startswith("<built-in") and " of Tensor" not in name and "torch" not in name
    return is_builtin or _NUMPY.search(name) is not None


def _in_steps(timeline: Timeline, rows: IntArray) -> IntArray:
    rows = rows[is_within_step(timeline, rows)]
    return rows[timeline.phase[rows] != Phase.DATA]


def _beyond_update_ns(timeline: Timeline, row: int, updates: IntArray) -> float:
    """Time of a library's frame less its first update: what keeping counts and computing them at the end leaves out."""
    kept = updates[inside(timeline, updates, np.array([row])) == 0]
    return float(timeline.trace.dur_ns[row] - (timeline.trace.dur_ns[kept[0]] if len(kept) else 0))


def _numeric_functions(timeline: Timeline) -> IntArray:
    """Executions of user functions that take tensors to numpy, or call numpy later in a step in which one does.

    Of nested ones the innermost.
    """
    trace, steps = timeline.trace, timeline.steps
    moved = _in_steps(timeline, frames_named(timeline, _TO_HOST))
    if not len(moved):
        return moved
    first_move = np.full(len(steps), np.iinfo(np.int64).max)
    np.minimum.at(first_move, steps.of[moved], trace.ts_ns[moved])
    counted = outermost(timeline, _in_steps(timeline, frames_named(timeline, _NUMPY)))
    counted = counted[trace.ts_ns[counted] > first_move[steps.of[counted]]]
    found = {_user_function(timeline, row) for row in (*moved.tolist(), *counted.tolist())} - {NONE}
    rows = _in_steps(timeline, np.array(sorted(found), dtype=np.int64))
    holding = {outer for row in rows.tolist() for outer in timeline.tree.ancestors(row)}
    return rows[~is_among(rows, sorted(holding))] if holding else rows


def _user_function(timeline: Timeline, row: int) -> int:
    """The innermost function of the user's own code round a row; NONE if there is none."""
    trace = timeline.trace
    for outer in timeline.tree.ancestors(row):
        name = trace.name_of(outer)
        is_frame = trace.cat[outer] == Category.PYTHON_FUNCTION
        if is_frame and not is_library_frame(name) and "-packages/" not in name and not _NUMPY.search(name):
            return outer
    return NONE


def _labels(timeline: Timeline, ops: IntArray) -> float:
    """Elements of the largest tensor that a function takes to numpy or to the host."""
    moved = ops[is_named(timeline.trace, ops, _HANDED_OVER.match)]
    shapes = [timeline.trace.inputs_of(row).shape(0) for row in moved.tolist()]
    return float(max((prod(shape) for shape in shapes), default=0))


PATTERN = Pattern(
    code="TAP210",
    slug="metric-on-host",
    title="Metric worked out on the host in every step",
    fix=FixKind.SAFE,
    find=find,
    needs=("stack",),
    group="transfers and synchronisation",
)
