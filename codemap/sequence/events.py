"""The events that are to be placed: what a step's thread did at top level, with the ranges that the profiler names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...analyzer.timeline.model import Phase, Timeline
from ...analyzer.timeline.tree import STEP_PREFIX
from ...analyzer.trace.model import NONE, Category, IntArray
from .within import Enclosures, Within

BACKWARD = "@backward"
"""Name of the backward pass, which counts as one event."""
LOADER = "@loader"
"""Name of a data loader's range."""
STEP = "@step"
ZERO_GRAD = "@zero_grad"
RANGE = "@range:"
"""What precedes the name of a range that the program itself names."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The events of one step, or of what lies between two, in time order. Arrays have shape (events,)."""

    rows: IntArray
    names: tuple[str, ...]
    """Operators without their namespace, or one of the names above."""
    inputs: IntArray
    """Index into the trace's `input_table`; NONE where not recorded."""
    within: tuple[Within, ...]
    """The modules and ranges that each ran inside of."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def key(self) -> tuple[tuple[str, ...], bytes, tuple[Within, ...]]:
        """The same for two segments that did the same."""
        return self.names, self.inputs.tobytes(), self.within


def segments(timeline: Timeline) -> list[Segment]:
    """What the main thread did, cut at the bounds of steps."""
    trace, steps = timeline.trace, timeline.steps
    rows = _top_level(timeline)
    if not len(rows):
        return []
    main = np.bincount(trace.thread[rows]).argmax()
    rows = rows[trace.thread[rows] == main]
    names = [_name(timeline, int(row)) for row in rows]
    number = steps.of[rows].astype(np.int64)
    cuts = np.flatnonzero(np.diff(number, prepend=number[0] - 2))
    found, enclosures = [], Enclosures(timeline)
    for first, last in zip(cuts.tolist(), [*cuts[1:].tolist(), len(rows)], strict=True):
        kept = [at for at in range(first, last) if names[at] and not _goes_on(names, at, first)]
        if kept:
            chosen = rows[kept]
            within = tuple(enclosures.of(row) for row in chosen.tolist())
            chosen_names, inputs = tuple(names[at] for at in kept), trace.inputs[chosen].astype(np.int64)
            found.append(Segment(chosen, chosen_names, inputs, within))
    return found


def _goes_on(names: list[str], at: int, first: int) -> bool:
    """Whether an event is part of the backward pass that the one before it belongs to."""
    return names[at] == BACKWARD and at > first and names[at - 1] == BACKWARD


def _top_level(timeline: Timeline) -> IntArray:
    """Operators and ranges that lie in no operator and in no range of an optimizer, in time order."""
    trace, tree = timeline.trace, timeline.tree
    rows = trace.rows(Category.CPU_OP, Category.USER_ANNOTATION)
    parent = tree.parent[rows]
    is_outer = (parent == NONE) | (tree.op[parent] == NONE)
    is_step = np.array([name.startswith(STEP_PREFIX) for name in trace.names], bool)
    is_range = trace.cat == Category.USER_ANNOTATION
    is_optimizer = np.array([name.startswith("Optimizer.") for name in trace.names], bool)
    outer = np.where(parent == NONE, NONE, tree.annotation[parent])
    is_inside = (outer != NONE) & is_optimizer[trace.name[outer]] & ~np.isin(outer, _with_closures(timeline))
    return rows[is_outer & ~is_inside & ~(is_step[trace.name[rows]] & is_range[rows])]


def _with_closures(timeline: Timeline) -> IntArray:
    """Ranges of optimizers in which the program's own code runs: their step was given a closure for the loss."""
    backward = np.flatnonzero(timeline.phase == Phase.BACKWARD)
    around = np.unique(timeline.tree.annotation[backward]).astype(np.int64)
    return around[around != NONE]


def _name(timeline: Timeline, row: int) -> str:
    """The event's name; "" for what the profiler notes besides the program."""
    name = timeline.trace.name_of(row)
    if timeline.trace.cat[row] == Category.USER_ANNOTATION:
        if name.startswith("Optimizer.step#"):
            return STEP
        if name.startswith("Optimizer.zero_grad#"):
            return ZERO_GRAD
        if name.startswith("enumerate(DataLoader)"):
            return LOADER
        return RANGE + name
    if timeline.phase[row] == Phase.BACKWARD:
        return BACKWARD
    return name.rpartition("::")[2]
