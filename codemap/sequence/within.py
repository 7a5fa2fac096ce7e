"""What an event ran inside of, where the trace says it: the modules being called and the ranges being open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...analyzer.timeline.model import Timeline
from ...analyzer.timeline.roots import MODULE_PREFIX
from ...analyzer.timeline.tree import STEP_PREFIX
from ...analyzer.trace.model import NONE, Category
from ..labels import Kind, parse_label

_AUTOMATIC = (STEP_PREFIX, "Optimizer.", "enumerate(DataLoader)")
_ELSEWHERE = 4.0
"""Cost of an operator that ran inside of something else than the program says."""
_APART = 0.5
"""Cost of a module called without those around it: a block that the backward pass computes again."""


@dataclass(frozen=True, slots=True)
class Within:
    """Class names of modules and names of ranges, each outermost first; None where the trace does not record them."""

    modules: tuple[str, ...] | None = ()
    ranges: tuple[str, ...] | None = ()

    def in_module(self, class_name: str) -> Within:
        """The same inside the call of a module."""
        return replace(self, modules=_with(self.modules, class_name))

    def in_range(self, name: str) -> Within:
        """The same inside a named range."""
        return replace(self, ranges=_with(self.ranges, name))


def _with(names: tuple[str, ...] | None, name: str) -> tuple[str, ...] | None:
    """One more name inside of `names`, which None leaves unknown; beyond the deepest none."""
    return names if names is None or len(names) >= _DEEPEST else (*names, name)


_DEEPEST = 200
"""Modules, and ranges, inside of each other that are told apart. No program nests so many; a hostile trace may."""
NOWHERE = Within()
UNKNOWN = Within(None, None)


class Enclosures:
    """What encloses the events of a trace."""

    def __init__(self, timeline: Timeline) -> None:
        trace = self._trace = timeline.trace
        self._parent = timeline.tree.parent
        names = [trace.names[int(name)] for name in set(trace.name[trace.rows(Category.USER_ANNOTATION)].tolist())]
        has_ranges = any(not name.startswith(_AUTOMATIC) for name in names)
        has_modules = any(name.startswith(MODULE_PREFIX) for name in trace.names)
        self._known = {NONE: Within(() if has_modules else None, () if has_ranges else None)}

    def of(self, row: int) -> Within:
        """What the event `row` ran inside of."""
        row, pending = int(self._parent[row]), []
        while row not in self._known:
            pending.append(row)
            row = int(self._parent[row])
        found = self._known[row]
        for row in reversed(pending):
            found = self._known[row] = self._opened(found, row)
        return found

    def _opened(self, around: Within, row: int) -> Within:
        name, category = self._trace.name_of(row), self._trace.cat[row]
        if category == Category.PYTHON_FUNCTION and name.startswith(MODULE_PREFIX):
            label = parse_label(name)
            return around.in_module(label.name) if label.kind is Kind.MODULE else around
        if category == Category.USER_ANNOTATION and not name.startswith(_AUTOMATIC):
            return around.in_range(name)
        return around


class Mismatch:
    """Costs of events that ran inside of something else than the program says."""

    def __init__(self, nodes: Sequence[Within], is_open: Sequence[bool]) -> None:
        """`nodes` says what each node of the program runs inside of; `is_open` whether it stands for code that the
        program does not show, and which may call further modules."""
        numbers: dict[tuple[Within, bool], int] = {}
        pairs = zip(nodes, is_open, strict=True)
        self._of = np.array([numbers.setdefault(pair, len(numbers)) for pair in pairs], np.int64)
        self._kinds = list(numbers)
        self._modules = frozenset(name for within, _ in self._kinds for name in within.modules or ())
        self._ranges = frozenset(name for within, _ in self._kinds for name in within.ranges or ())
        self._costs: dict[Within, npt.NDArray[np.float32]] = {}

    def costs(self, within: Within) -> npt.NDArray[np.float32]:
        """Shape (nodes,): cost of an event inside of `within` at each node.

        Modules and ranges that the program never mentions do not count: it opens them where nobody can see.
        """
        if within not in self._costs:
            modules, ranges = _mentioned(within.modules, self._modules), _mentioned(within.ranges, self._ranges)
            each = [_cost(modules, ranges, node, is_open) for node, is_open in self._kinds]
            self._costs[within] = np.array(each, np.float32)[self._of]
        return self._costs[within]


def _mentioned(names: Iterable[str] | None, known: frozenset[str]) -> tuple[str, ...] | None:
    return None if names is None else tuple(name for name in names if name in known)


def _cost(modules: tuple[str, ...] | None, ranges: tuple[str, ...] | None, node: Within, is_open: bool) -> float:
    cost = 0.0
    if ranges is not None and ranges != node.ranges:
        cost += _ELSEWHERE
    if modules is not None and node.modules is not None and modules != node.modules:
        is_below = is_open and modules[: len(node.modules)] == node.modules
        is_part = bool(modules) and node.modules[-len(modules) :] == modules
        cost += 0.0 if is_below else _APART if is_part else _ELSEWHERE
    return cost
