"""The events that are to be placed: what a step's thread did at top level, with the ranges that the profiler names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...analyzer.timeline.model import Phase, Timeline
from ...analyzer.timeline.tree import STEP_PREFIX, is_step_mark
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

_ENGINE = "autograd::engine"
_MOST_NESTED = 8


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
    further: IntArray
    """Shape (2, rows): further rows that an event stands for, and the number of that event."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def key(self) -> tuple[tuple[str, ...], bytes, tuple[Within, ...]]:
        """The same for two segments that did the same."""
        return self.names, self.inputs.tobytes(), self.within


def segments(timeline: Timeline) -> list[Segment]:
    """What the main thread did, cut at the bounds of steps; what ran of the program's own in backward passes."""
    trace, steps = timeline.trace, timeline.steps
    rows = _top_level(timeline)
    if not len(rows):
        return []
    # With a device, the backward pass runs on a thread of its own while the main one waits.
    is_engine = np.array([name.startswith(_ENGINE) for name in trace.names], bool)[trace.name[rows]]
    rows = rows[(trace.thread[rows] == _main_thread(timeline, rows)) | is_engine]
    number = steps.of[rows].astype(np.int64)
    cuts = np.flatnonzero(np.diff(number, prepend=number[0] - 2))
    groups = [rows[first:last] for first, last in zip(cuts, [*cuts[1:], len(rows)], strict=True)]
    enclosures = Enclosures(timeline)
    found = [_segment(timeline, group, enclosures) for group in [*groups, *_inside_backward(timeline)]]
    return [one for one in found if len(one)]


def _main_thread(timeline: Timeline, rows: IntArray) -> int:
    """The thread that the steps are marked on; without marks, the one that did most besides the backward pass."""
    trace = timeline.trace
    marks = np.flatnonzero(is_step_mark(trace))
    chosen = marks if len(marks) else rows[timeline.phase[rows] != Phase.BACKWARD]
    return int(np.bincount(trace.thread[chosen if len(chosen) else rows]).argmax())


def _segment(timeline: Timeline, rows: IntArray, enclosures: Enclosures) -> Segment:
    names = [_name(timeline, int(row)) for row in rows]
    kept = [at for at, name in enumerate(names) if name and not (at and name == names[at - 1] == BACKWARD)]
    chosen = rows[kept]
    rest = np.setdiff1d(np.flatnonzero([name == BACKWARD for name in names]), kept)
    event = np.searchsorted(np.array(kept), rest, side="right") - 1
    further = np.stack([rows[rest], event])
    within = tuple(enclosures.of(row) for row in chosen.tolist())
    return Segment(
        chosen, tuple(names[at] for at in kept), timeline.trace.inputs[chosen].astype(np.int64), within, further
    )


def _inside_backward(timeline: Timeline) -> list[IntArray]:
    """Operators that the backward pass ran of the program's own: blocks that were computed anew (checkpoints), whose
    operators alone are numbered for a backward pass of their own, and hand-written `backward` methods."""
    trace, tree = timeline.trace, timeline.tree
    rows = trace.rows(Category.CPU_OP, Category.USER_ANNOTATION)
    rows = rows[tree.parent[rows] != NONE]
    # Between a block and the node that computes it anew may stand the calls of modules.
    around = tree.op[tree.parent[rows]].astype(np.int64)
    rows, around = rows[around != NONE], around[around != NONE]
    is_numbered = trace.sequence != NONE
    is_operator = np.array([name.startswith("aten::") for name in trace.names], bool)[trace.name]
    is_forward = is_numbered & is_operator & (timeline.phase == Phase.BACKWARD)
    is_written = np.array([_is_written_backward(name) for name in trace.names], bool)[trace.name]
    is_node = np.array(["Backward" in name and "::" not in name for name in trace.names], bool)[trace.name]
    is_found = (timeline.phase[rows] == Phase.BACKWARD) & ((is_forward[rows] & is_node[around]) | is_written[around])
    found = []
    for outer in np.unique(around[is_found]).tolist():
        inside = rows[around == outer]
        last = len(inside) if is_written[outer] else int(np.flatnonzero((is_numbered & is_operator)[inside])[-1]) + 1
        found.append(inside[:last].astype(np.int64))
    return found


def _is_written_backward(name: str) -> bool:
    """Whether an operator is the backward of a `torch.autograd.Function` of Python: torch's own are numbered."""
    return name.endswith("Backward") and "::" not in name


def _top_level(timeline: Timeline) -> IntArray:
    """Operators and ranges that lie in no operator and in no range of an optimizer, in time order."""
    trace, tree = timeline.trace, timeline.tree
    rows = trace.rows(Category.CPU_OP, Category.USER_ANNOTATION)
    parent = tree.parent[rows]
    is_outer = (parent == NONE) | (_outer_op(timeline)[parent] == NONE)
    is_step = np.array([name.startswith(STEP_PREFIX) for name in trace.names], bool)
    is_range = trace.cat == Category.USER_ANNOTATION
    is_optimizer = np.array([name.startswith("Optimizer.") for name in trace.names], bool)
    outer = np.where(parent == NONE, NONE, tree.annotation[parent])
    is_inside = (outer != NONE) & is_optimizer[trace.name[outer]] & ~np.isin(outer, _with_closures(timeline))
    return rows[is_outer & ~is_inside & ~(is_step[trace.name[rows]] & is_range[rows])]


def _outer_op(timeline: Timeline) -> IntArray:
    """For each row, the innermost operator around it, or that it is, of those whose inside is not the program's own:
    the forward of a `torch.autograd.Function` written in Python is."""
    trace, tree = timeline.trace, timeline.tree
    is_own = np.array(["::" not in name for name in trace.names], bool)[trace.name] & (timeline.phase != Phase.BACKWARD)
    op = tree.op.astype(np.int64)
    for _ in range(_MOST_NESTED):
        inside = np.flatnonzero((op != NONE) & is_own[op])
        if not len(inside):
            break
        parent = tree.parent[op[inside]]
        op[inside] = np.where(parent == NONE, NONE, tree.op[parent])
    return op


def _with_closures(timeline: Timeline) -> IntArray:
    """Ranges of optimizers in which the program's own code runs: their step was given a closure for the loss."""
    names = [number for number, name in enumerate(timeline.trace.names) if name.startswith(_ENGINE)]
    backward = np.flatnonzero(np.isin(timeline.trace.name, names))
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
    if name.startswith(_ENGINE):
        return BACKWARD
    return name.rpartition("::")[2]
