"""Loops as a trace shows them: work that one execution of a function does over and over.

What a function of the user's code does itself (its operators and calls, in time order) are its units of work. A loop
shows as a unit that comes back once a round, with the same company each time. Modules keep their instance's number, so
a walk through the layers of a model is no loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..trace.model import NONE, BoolArray, Category, Int32Array, IntArray
from .columns import distinct, is_named
from .model import Phase, Timeline
from .sites import is_library_frame

LEAST_ROUNDS = 4
_LEAST_SHARE = 0.005
"""A function that takes less of the steps than this is not looked at."""
_LEAST_REGULAR = 0.5
_NEARLY = 0.85
"""Of units that mark rounds nearly as well as the best, the one with most rounds marks the innermost loop."""
_LOOKUP = "): __getattr__"
"""Looking a module's parts up is no work."""
_ADDRESS = " object at 0x"
_MIXERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9)


@dataclass(frozen=True, slots=True)
class Repeat:
    """The rounds of a loop in one execution of a function."""

    frame: int
    """The row whose code loops: a Python frame, or an annotation where the trace has no frames."""
    units: IntArray
    """Rows of all rounds, in time order: operators, calls, modules. None lies in another."""
    starts: IntArray
    """Shape (rounds,): where in `units` each round begins."""
    regularity: float
    """Share of the rounds that do what most of them do."""

    @property
    def rounds(self) -> int:
        """How often the work is done."""
        return len(self.starts)

    @property
    def first(self) -> IntArray:
        """Units of the first round."""
        return self.units[: self.starts[1]]

    @property
    def others(self) -> IntArray:
        """Units of all rounds but the first."""
        return self.units[self.starts[1] :]

    def span_ns(self, timeline: Timeline) -> int:
        """Host time from the beginning of the first round to the end of the last."""
        trace = timeline.trace
        return int(trace.end_ns[self.units[-1]] - trace.ts_ns[self.units[0]])


def find_repeats(timeline: Timeline, least_rounds: int = LEAST_ROUNDS) -> list[Repeat]:
    """The loop of each execution of a function in the steady steps that has one; in order of their frames."""
    if timeline.steps.is_cold:
        return []
    units, bounds = _units_by_function(timeline)
    kind = _kinds(timeline, units)
    known: dict[bytes, tuple[IntArray, int, float] | None] = {}
    found = []
    for start, end in bounds:
        rows, kinds = units[start:end], kind[start:end]
        key = kinds.tobytes()
        if key not in known:
            known[key] = _rounds(kinds, timeline.trace.dur_ns[rows], least_rounds)
        if (rounds := known[key]) is not None:
            starts, last, regularity = rounds
            found.append(
                Repeat(int(timeline.tree.parent[rows[0]]), rows[starts[0] : last], starts - starts[0], regularity)
            )
    return found


def _units_by_function(timeline: Timeline) -> tuple[IntArray, list[tuple[int, int]]]:
    """Units in order of function and time, and where each execution with enough of them begins and ends."""
    trace, tree, steps = timeline.trace, timeline.tree, timeline.steps
    rows = trace.rows(Category.CPU_OP, Category.PYTHON_FUNCTION)
    rows = rows[steps.are_steady(rows) & (tree.parent[rows] != NONE)]
    rows = rows[~np.isin(timeline.phase[rows], (Phase.DATA, Phase.BACKWARD, Phase.OPTIMIZER))]
    rows = rows[~is_named(trace, rows, lambda name: name.endswith(_LOOKUP))]
    parent = tree.parent[rows]
    rows = rows[_is_user_code(timeline, parent)]
    parent = tree.parent[rows].astype(np.int64)
    order = np.lexsort((rows, steps.of[rows], parent))
    rows, parent = rows[order], parent[order]
    if not len(rows):
        return rows, []
    begins = np.flatnonzero(np.diff(parent, prepend=-1) | np.diff(steps.of[rows], prepend=-1))
    ends = np.append(begins[1:], len(rows))
    # Executions of one function count together: its share of the steps decides whether it is looked at.
    spans = (trace.end_ns[rows[ends - 1]] - trace.ts_ns[rows[begins]]).astype(np.float64)
    total = np.bincount(trace.name[parent[begins]], weights=spans, minlength=len(trace.names))
    steady_ns = float(steps.duration_ns[steps.steady].sum())
    wanted = (ends - begins >= LEAST_ROUNDS) & (total[trace.name[parent[begins]]] >= _LEAST_SHARE * steady_ns)
    return rows, list(zip(begins[wanted].tolist(), ends[wanted].tolist(), strict=True))


def _is_user_code(timeline: Timeline, parent: Int32Array) -> BoolArray:
    """For each row, whether it is a frame of the user's own code; where there are no frames, an annotation."""
    trace = timeline.trace
    if _has_frames(timeline):
        is_library = is_named(trace, parent, is_library_frame)
        return (trace.cat[parent] == Category.PYTHON_FUNCTION) & ~is_library
    is_mark = is_named(trace, parent, lambda name: name.startswith(("ProfilerStep#", "Optimizer.")))
    return (trace.cat[parent] == Category.USER_ANNOTATION) & ~is_mark


def _has_frames(timeline: Timeline) -> bool:
    return bool(len(timeline.trace.rows(Category.PYTHON_FUNCTION)))


def _kinds(timeline: Timeline, units: IntArray) -> IntArray:
    """A number for what each unit is: the same for two calls of one function, whatever object it is called on.

    Without frames there are only operators, and those of a model's layers look alike: there sizes count too.
    """
    trace = timeline.trace
    names = trace.name[units]
    kind_of: dict[str, int] = {}
    table = np.zeros(len(trace.names), dtype=np.int64)
    for name in distinct(names).tolist():
        bare = trace.names[name].partition(_ADDRESS)[0]
        table[name] = kind_of.setdefault(bare, len(kind_of))
    if _has_frames(timeline):
        return table[names]
    # Of operators without recorded sizes no two are taken for the same.
    inputs = np.where(trace.inputs[units] != NONE, trace.inputs[units], np.arange(len(units)) + len(trace.input_table))
    pairs = table[names] * (int(inputs.max(initial=0)) + 1) + inputs
    return np.searchsorted(distinct(pairs), pairs)


def _rounds(kinds: IntArray, took_ns: IntArray, least: int) -> tuple[IntArray, int, float] | None:
    """Where the rounds of a sequence of units begin, where the last one ends, and how regular they are."""
    counts = np.bincount(kinds)
    marks = np.flatnonzero(counts >= least)
    if not len(marks):
        return None
    order = np.argsort(kinds, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(counts)])
    # A round's sum says which units it holds, in whatever order.
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(_mixed(kinds))])
    time_ns = np.concatenate([[0], np.cumsum(took_ns)])
    tried = [_marked(order[offsets[mark] : offsets[mark + 1]], sums, time_ns) for mark in marks.tolist()]
    best = max(regularity * covered for _, _, regularity, covered in tried)
    good = [one for one in tried if one[2] >= _LEAST_REGULAR and one[2] * one[3] >= _NEARLY * best]
    if not good:
        return None
    starts, last, regularity, _ = max(good, key=lambda one: (len(one[0]), -one[0][0]))
    return starts, last, regularity


def _marked(starts: IntArray, sums: np.ndarray, time_ns: IntArray) -> tuple[IntArray, int, float, float]:
    """Rounds that begin where one kind of unit stands: starts, the end of the last, regularity, time covered."""
    usual = int(np.sort(np.diff(starts))[(len(starts) - 1) // 2])
    last = min(int(starts[-1]) + usual, len(time_ns) - 1)
    ends = np.append(starts[1:], last)
    held = np.sort(sums[ends] - sums[starts])
    runs = np.flatnonzero(np.concatenate([[True], held[1:] != held[:-1], [True]]))
    alike = max(end - start for start, end in pairwise(runs.tolist()))
    return starts, last, alike / len(starts), float(time_ns[last] - time_ns[starts[0]])


def _mixed(kinds: IntArray) -> np.ndarray:
    """A number for each kind such that sums of different kinds differ."""
    mixed = (kinds.astype(np.uint64) + np.uint64(1)) * np.uint64(_MIXERS[0])
    mixed ^= mixed >> np.uint64(29)
    return mixed * np.uint64(_MIXERS[1])
