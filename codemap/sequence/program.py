"""The program as an automaton over the top-level operators that running it leaves in a trace.

Nodes are *expectations*, operators that a call or an operator of the source shows as, in the order of execution; calls
of workspace functions and modules are inlined, so each node knows the whole path of calls that leads to it. Edges are
the control flow. `beam.py` finds the cheapest path of a trace's events through it. Costs are in "surprises": 0 is what
the program says, 1 is what would need an explanation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...analyzer.trace.model import OpInputs
from ..automaton import NEVER
from .within import NOWHERE, Within

_WRONG_SIZES = 6.0
"""Cost of an operator whose tensor has other sizes than the program's constants give it."""
_WRONG_HINT = 0.7
_WRONG_VALUE = 1.5
"""Cost of an operator that got another number (a dimension, a stride) than stands in the program."""


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """A call or operator in its statement, and the call that led there."""

    path: str
    qualname: str
    """Of the function that holds the statement."""
    statement: ast.AST
    node: ast.AST
    caller: Site | None = None
    function: ast.AST | None = None
    """The function's own node; None in a module's body."""


Sizes = tuple[tuple[int, tuple[int | None, ...]], ...]
"""Number of the argument, and the sizes of the tensor there; None for a size that is not known."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What is known of an operator's arguments."""

    sizes: Sizes = ()
    """Sizes that the program's constants give."""
    values: tuple[tuple[int, object], ...] = ()
    """Number of the argument, and the number, truth value or tuple of numbers there."""
    hints: Sizes = ()
    """Like `sizes`, but worked out on the way rather than written down: less sure."""

    def cost(self, recorded: OpInputs) -> tuple[float, int]:
        """Cost of having been called with `recorded`, and how many sizes of it were as expected."""
        cost, known = 0.0, 0
        for expected, wrong in ((self.sizes, _WRONG_SIZES), (self.hints, _WRONG_HINT)):
            for argument, sizes in expected:
                found = recorded.shape(argument)
                if not found:
                    continue
                if len(found) != len(sizes) or any(s is not None and s != f for s, f in zip(sizes, found, strict=True)):
                    cost += wrong
                elif wrong == _WRONG_SIZES:
                    known += sum(size is not None for size in sizes)
        for argument, value in self.values:
            found_value = parse_value(recorded.value(argument))
            if found_value is None:
                continue
            if _is_equal(value, found_value):
                known += 1
            else:
                cost += _WRONG_VALUE
        return cost, known


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """One operator (or annotation) that may show as an event."""

    site: Site
    names: Mapping[str, float]
    """Cost of each name (as in `events.Segment.names`) that it may show as."""
    anything: float = NEVER
    """Cost of any other operator: for calls of code that is not in the workspace."""
    skip: float = 0.0
    """Cost of running with no event."""
    repeat: float = NEVER
    """Cost of showing as one more event."""
    inputs: Inputs | None = None
    within: Within = NOWHERE
    """The modules that are being called, and the ranges that are open."""
    is_open: bool = False
    """Whether it stands for code that is not in the workspace, and which may call further modules."""


@dataclass(slots=True)
class Program:
    """`nodes[k]` is None where node k only joins paths."""

    nodes: list[Expected | None] = field(default_factory=list)
    before: list[list[tuple[int, float]]] = field(default_factory=list)
    """For each node, (node that control comes from, cost)."""
    starts: list[int] = field(default_factory=list)
    """Nodes that a recorded step is likely to start at: heads of the loops of scripts and of functions that train."""

    def add(self, node: Expected | None, at: Iterable[int], cost: float = 0.0) -> int:
        """Add a node that control reaches from those in `at`; its number."""
        self.nodes.append(node)
        self.before.append([(source, cost) for source in dict.fromkeys(at)])
        return len(self.nodes) - 1

    def link(self, sources: Iterable[int], target: int, cost: float = 0.0) -> None:
        """Let control reach `target` from `sources` too."""
        self.before[target].extend((source, cost) for source in dict.fromkeys(sources))


def parse_value(text: str) -> object:
    """A recorded concrete input as a value: a number, a truth value or a tuple of numbers; None for anything else."""
    if not text or len(text) > 200 or text[0] not in "-0123456789[TF":
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if isinstance(value, list):
        return tuple(value) if all(isinstance(item, (int, float)) for item in value) else None
    return value if isinstance(value, (int, float)) else None


def _is_equal(value: object, found: object) -> bool:
    """One number stands for as many as there are: `stride=2` shows as `[2, 2]`."""
    if isinstance(found, tuple):
        if isinstance(value, tuple):
            if len(value) == len(found):
                return all(item is None or item == there for item, there in zip(value, found, strict=True))
            return len(value) == 1 and all(item == value[0] for item in found)
        return all(item == value for item in found)
    if isinstance(value, tuple):
        return len(value) == 1 and value[0] == found
    if isinstance(value, float) or isinstance(found, float):
        return (
            isinstance(value, (int, float))
            and isinstance(found, (int, float))
            and abs(value - found) <= 1e-6 * abs(value)
        )
    return value == found
