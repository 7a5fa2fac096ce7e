"""What each operator of a recording was run by, from the line clock's marks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.model import NONE, Category, IntArray
from torchtraceap.analyzer.trace.read import read_trace

from .clock import PREFIX, Mark
from .recorder import MARKS, TRACE
from .strip import is_automatic

_OUTSIDE = Mark("", "", 0)


@dataclass(frozen=True, slots=True)
class Truth:
    """One operator: the line that ran it (or its forward operator), and what it weighs."""

    external_id: int
    name: str
    mark: Mark
    weight_ns: int
    is_tagged: bool
    """Whether it ran within a range that the program named."""


def read_truth(folder: Path) -> list[Truth]:
    """Every operator of the steady steps that the program's own code ran, directly or through a library."""
    timeline = build_timeline(read_trace(folder / TRACE))
    trace, tree = timeline.trace, timeline.tree
    marks = msgspec.json.decode((folder / MARKS).read_bytes(), type=list[Mark])
    number_of = np.array([_number(name) for name in trace.names])[trace.name]
    rows = np.flatnonzero((trace.cat == Category.CPU_OP) & (number_of == NONE))
    set_by = _latest_mark(timeline, number_of)
    found = []
    for row in rows[timeline.steps.are_steady(rows)].tolist():
        anchor = _forward(timeline, set_by, row)
        mark = marks[number_of[set_by[anchor]]] if set_by[anchor] != NONE else _OUTSIDE
        if mark.line and tree.self_ns[row] > 0:
            around = [trace.name_of(each) for each in tree.ancestors(anchor) if _is_range(timeline, each)]
            is_tagged = any(not is_automatic(name) for name in around)
            found.append(
                Truth(int(trace.external_id[row]), trace.name_of(row), mark, int(tree.self_ns[row]), is_tagged)
            )
    return found


def _number(name: str) -> int:
    return int(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else NONE


def _is_range(timeline: Timeline, row: int) -> bool:
    return timeline.trace.cat[row] == Category.USER_ANNOTATION


def _latest_mark(timeline: Timeline, number_of: IntArray) -> IntArray:
    """For each row, the last mark before it on its thread; NONE before the first."""
    trace = timeline.trace
    found = np.full(len(trace), NONE, np.int64)
    for thread in np.unique(trace.thread):
        rows = np.flatnonzero(trace.thread == thread)
        rows = rows[np.argsort(trace.ts_ns[rows], kind="stable")]
        position = np.where(number_of[rows] != NONE, np.arange(len(rows)), -1)
        latest = np.maximum.accumulate(position)
        found[rows] = np.where(latest >= 0, rows[latest], NONE)
    return found


def _forward(timeline: Timeline, set_by: IntArray, row: int) -> int:
    """The operator whose line counts: the forward one of a backward operator, unless the program's own code runs
    inside the backward pass (a recomputed block, a hand-written `backward`)."""
    forward = int(timeline.forward_op[row])
    if forward == NONE:
        return row
    tree, trace = timeline.tree, timeline.trace
    outermost = row
    for outer in tree.ancestors(row):
        if trace.cat[outer] == Category.CPU_OP and timeline.forward_op[outer] == forward:
            outermost = outer
    if set_by[row] == NONE or set_by[row] == set_by[outermost]:
        return forward
    # A hook that has returned leaves a mark too: that of the line that went on.
    is_back = trace.name[set_by[row]] == trace.name[set_by[outermost]]
    return forward if is_back else row
