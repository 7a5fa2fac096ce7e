"""The smallest parts of a step that windows are made of: nodes of the call tree that nothing is gained by opening.

Steps are opened together, level by level: nodes that stand at the same place of the tree in several steps count as one
*part*, so that what is decided about a part holds in every step, and no decision hangs on the noise of one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from ..timeline.columns import is_among
from ..timeline.model import Phase, Timeline
from ..timeline.tree import is_step_mark
from ..trace.model import (
    DEVICE_CATEGORIES,
    HOST_CATEGORIES,
    NONE,
    BoolArray,
    Category,
    FloatArray,
    Int8Array,
    Int32Array,
    IntArray,
    Trace,
)
from .spans import Costs, usual_share

_LARGE = 0.08
"""Share of a step from which a node is opened, if it has something inside."""
_MIXED = 0.01
"""Share of a step from which a node is opened that holds more than one phase."""
_LEAST_INSIDE = 8
"""Operators and launches that a frame or annotation must hold to be opened; kernels that a graph's launch must."""
_LEAST_INSIDE_OPERATOR = 32
"""The same for an operator: few hold more than their own implementation."""
_ADDRESS = " object at 0x"
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Units:
    """The parts of the chosen steps, in order of step and time. Arrays have shape (units,) unless said otherwise."""

    row: IntArray
    """The event: a host event of the main thread or of the autograd engine's; a kernel inside a graph's launch, or of
    a trace without host events."""
    step: IntArray
    start_ns: IntArray
    """Never falls. Whatever the host does until the next unit, or the end of the step, counts to this one."""
    end_ns: IntArray
    share: FloatArray
    """Of the step: of its host time or of the device time launched in it, whichever share is larger."""
    part: IntArray
    """The same for units that stand at the same place in their steps; index into `parent`."""
    parent: IntArray
    """Shape (parts,): the part that encloses each; NONE at the top. Includes parts that were opened."""
    example: IntArray
    """Shape (parts,): an event of each part."""

    def __len__(self) -> int:
        return len(self.row)


def find_units(timeline: Timeline, chosen: IntArray, moment_ns: IntArray, costs: Costs) -> Units:
    """Open the call trees of the `chosen` steps, in order, as far as it tells something."""
    trees = _Trees(timeline, chosen, moment_ns, costs)
    level = trees.roots()
    found = []
    while len(level.row):
        opened, done = trees.part_level(level)
        found.append(done)
        level = trees.below(opened)
    return trees.as_units(found)


@dataclass(frozen=True, slots=True)
class _Level:
    """Nodes of one depth, in time order."""

    row: IntArray
    opens_ns: IntArray
    """Where what encloses the node opened, if the node is the first in it; else the node's start."""
    above: IntArray
    """The part above."""
    part: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def only(self, wanted: BoolArray) -> _Level:
        return _Level(self.row[wanted], self.opens_ns[wanted], self.above[wanted], self.part[wanted])


class _Trees:
    """The call trees of the chosen steps while they are opened."""

    def __init__(self, timeline: Timeline, chosen: IntArray, moment_ns: IntArray, costs: Costs) -> None:
        trace, steps = timeline.trace, timeline.steps
        self.timeline = timeline
        self.chosen = chosen
        self.moment_ns = moment_ns
        self.costs = costs
        self.is_wanted = np.append(is_among(np.arange(len(steps)), chosen), False)[steps.of]
        self.is_mark = is_step_mark(trace)
        self.kind = _kinds(trace)
        inside = np.flatnonzero(self.is_wanted & is_among(trace.cat, (Category.CPU_OP, Category.RUNTIME)))
        self.inside_ns = trace.ts_ns[inside]
        ops = inside[(trace.cat[inside] == Category.CPU_OP) & self._is_main(inside)]
        self.op_ns, self.op_phase = trace.ts_ns[ops], timeline.phase[ops]
        self.turns = np.cumsum(np.diff(self.op_phase, prepend=self.op_phase[:1]) != 0)
        self.parent: list[IntArray] = []
        self.example: list[IntArray] = []
        self.parts = 0

    def _is_main(self, rows: IntArray) -> BoolArray:
        graph = self.timeline.graph
        start = graph.row_start[rows]
        return (start >= 0) & (start < graph.span_ns)

    def roots(self) -> _Level:
        """The outermost events of the main thread, and those of others where they run the backward pass or the main
        thread does nothing; without a host, the kernels."""
        trace, tree, of = self.timeline.trace, self.timeline.tree, self.timeline.steps.of
        hosts = np.flatnonzero(self.is_wanted & is_among(trace.cat, HOST_CATEGORIES) & ~self.is_mark)
        parent = tree.parent[hosts]
        roots = hosts[(parent == NONE) | (of[parent] != of[hosts]) | self.is_mark[parent]]
        if not len(roots):
            device = self.timeline.device_rows
            roots = device[self.is_wanted[device]]
        is_main = self._is_main(roots)
        busy_until = np.maximum.accumulate(np.where(is_main, trace.end_ns[roots], 0))
        is_alone = trace.ts_ns[roots] >= busy_until
        roots = roots[is_main | is_alone | (self.timeline.phase[roots] == Phase.BACKWARD)]
        return _Level(roots, self.moment_ns[roots], np.full(len(roots), NONE, dtype=np.int64))

    def part_level(self, level: _Level) -> tuple[_Level, _Level]:
        """Give the nodes of a level their parts; those to be opened, and those that are units."""
        part, example = self._parts(level)
        count = len(example)
        opens = self._opened(level.row, part, count)
        numbered = _Level(level.row, level.opens_ns, level.above, part + self.parts)
        above = np.empty(count, dtype=np.int64)
        above[part] = level.above
        self.parent.append(above)
        self.example.append(example)
        self.parts += count
        return numbered.only(opens[part]), numbered.only(~opens[part])

    def _parts(self, level: _Level) -> tuple[IntArray, IntArray]:
        """Nodes of one name under one part are the same part where they come equally late in their steps."""
        step = self.timeline.steps.of[level.row].astype(np.int64)
        kind = (level.above + 1) * (int(self.kind.max()) + 1) + self.kind[self.timeline.trace.name[level.row]]
        key = kind * len(self.timeline.steps) + step
        order = np.argsort(key, kind="stable")
        is_first = np.diff(key[order], prepend=-1) != 0
        nth = np.arange(len(order)) - np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
        same = kind[order] * (int(nth.max()) + 1) + nth
        _, example, part = np.unique(same, return_index=True, return_inverse=True)
        found = np.empty(len(order), dtype=np.int64)
        found[order] = part
        return found, level.row[order][example]

    def _opened(self, row: IntArray, part: IntArray, count: int) -> BoolArray:
        """Shape (parts of the level,): whether to open them."""
        trace, timeline = self.timeline.trace, self.timeline
        step, start_ns = timeline.steps.of[row].astype(np.int64), self.moment_ns[row]
        is_host = ~is_among(trace.cat[row], DEVICE_CATEGORIES)
        end_ns = np.where(is_host, np.minimum(trace.end_ns[row], timeline.steps.end_ns[step]), start_ns)
        share = usual_share(part, self.costs.share(step, start_ns, end_ns), count, len(self.chosen))
        looked_at = np.flatnonzero((share >= _MIXED)[part] & is_host)
        opens = np.zeros(count, dtype=np.bool_)
        if not len(looked_at):
            return opens
        row, part, span = row[looked_at], part[looked_at], (start_ns[looked_at], end_ns[looked_at])
        launched = np.diff(np.searchsorted(self.costs.launch_ns, span), axis=0)[0]
        inside = np.maximum(np.diff(np.searchsorted(self.inside_ns, span), axis=0)[0] - 1, launched)
        least = np.where(trace.cat[row] == Category.CPU_OP, _LEAST_INSIDE_OPERATOR, _LEAST_INSIDE)
        is_range = is_among(trace.cat[row], (Category.USER_ANNOTATION, Category.PYTHON_FUNCTION))
        # The autograd engine's work lies beside these, not inside.
        calls_engine = is_range & (timeline.phase[row] == Phase.BACKWARD)
        large = (share[part] >= _LARGE) & ((inside >= least) | calls_engine)
        opens[part[large | (is_range & self._is_mixed(*span))]] = True
        return opens

    def _is_mixed(self, start_ns: IntArray, end_ns: IntArray) -> BoolArray:
        """Whether operators of several phases run in each span."""
        first, last = np.searchsorted(self.op_ns, (start_ns, end_ns))
        holds = last > first
        found = np.zeros(len(first), dtype=np.bool_)
        found[holds] = self.turns[last[holds] - 1] > self.turns[first[holds]]
        return found

    def below(self, level: _Level) -> _Level:
        """The children of the nodes of a level, in time order; of a graph's launch, its kernels."""
        tree, launches, of = self.timeline.tree, self.timeline.launches, self.timeline.steps.of
        is_graph = launches.device_start[level.row + 1] - launches.device_start[level.row] > 1
        first, end = (
            np.where(is_graph, launches.device_start[level.row + later], tree.child_start[level.row + later])
            for later in (0, 1)
        )
        count = end - first
        owner = np.repeat(np.arange(len(level.row)), count)
        nth = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
        place = np.repeat(first, count) + nth
        row = np.where(is_graph[owner], _at(launches.device_rows, place), _at(tree.child_rows, place))
        opens_ns = np.where(nth == 0, level.opens_ns[owner], self.moment_ns[row])
        inside = (of[row] == of[level.row[owner]]) & ~self.is_mark[row]
        row, opens_ns, above = row[inside], opens_ns[inside], level.part[owner][inside]
        order = np.argsort(row, kind="stable")
        return _Level(row[order], opens_ns[order], above[order])

    def as_units(self, found: list[_Level]) -> Units:
        """The units of all levels in order of step and time."""
        row, opens_ns, part = (
            np.concatenate([getattr(level, name) for level in found] or [np.empty(0, dtype=np.int64)])
            for name in ("row", "opens_ns", "part")
        )
        steps = self.timeline.steps
        order = np.lexsort((row, self.moment_ns[row], steps.of[row]))
        row, opens_ns, part = row[order], opens_ns[order], part[order]
        step = steps.of[row].astype(np.int64)
        is_first = np.diff(step, prepend=NONE) != 0
        start_ns = np.maximum.accumulate(np.where(is_first, steps.start_ns[step], opens_ns))
        end_ns = np.append(start_ns[1:], 0)
        is_last = np.append(is_first[1:], True)[: len(row)]
        end_ns = np.where(is_last, np.maximum(steps.end_ns[step], start_ns), end_ns[: len(row)])
        none = np.empty(0, dtype=np.int64)
        return Units(
            row=row,
            step=step,
            start_ns=start_ns,
            end_ns=end_ns,
            share=self.costs.share(step, start_ns, end_ns),
            part=part,
            parent=np.concatenate([none, *self.parent]),
            example=np.concatenate([none, *self.example]),
        )


def _kinds(trace: Trace) -> IntArray:
    """For each name a number, the same for names that differ only by an address or, of annotations, in numbers."""
    annotations = set(trace.name[trace.cat == Category.USER_ANNOTATION].tolist())
    known: dict[str, int] = {}
    kinds = np.empty(len(trace.names), dtype=np.int64)
    for index, name in enumerate(trace.names):
        bare = _NUMBER.sub("#", name) if index in annotations else name.partition(_ADDRESS)[0]
        kinds[index] = known.setdefault(bare, len(known))
    return kinds


def _at(values: Int32Array, places: IntArray) -> IntArray:
    """`values[places]`, 0 for places beyond the end."""
    return np.append(values, 0)[np.minimum(places, len(values))].astype(np.int64)


def phases_of(timeline: Timeline, rows: IntArray) -> Int8Array:
    """The phase of each of `rows` (units); of a frame that has none, that of the operators inside."""
    trace, phase = timeline.trace, timeline.phase[rows]
    ops = trace.rows(Category.CPU_OP)
    first, last = np.searchsorted(trace.ts_ns[ops], (trace.ts_ns[rows], trace.end_ns[rows]))
    middle = timeline.phase[np.append(ops, 0)[(first + last) // 2]] if len(trace) else phase
    is_open = (phase == Phase.OTHER) & (last > first)
    return np.where(is_open & ~is_among(trace.cat[rows], DEVICE_CATEGORIES), middle, phase).astype(np.int8)
