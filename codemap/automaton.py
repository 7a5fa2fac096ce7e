"""The automaton that `grammar.py` compiles a function into and `align.py` walks: actions joined by control flow."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from .labels import Label

NEVER = float("inf")

_OTHER_PACKAGE = 0.4

Weak = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that may show as an event. Costs are in surprises: 0 is expected, 1 would need an explanation."""

    node: ast.AST
    """The call or operator itself."""
    statement: ast.AST
    """The statement that holds it (the lambda or comprehension where that has the frame)."""
    exact: Mapping[str, float]
    """Cost of matching an event of this `Label.key`."""
    weak: Weak = (NEVER, NEVER, NEVER, NEVER)
    """Cost of matching any other event, by `Kind`."""
    skip: float = 0.0
    """Cost of running with no event."""
    repeat: float = NEVER
    """Cost of showing as one more event."""
    home: tuple[str, ...] = ()
    """Package of the object whose method is called, where known: `("torch", "optim")`."""

    def cost(self, label: Label) -> float:
        """Cost of showing as an event with this label."""
        cost = self.exact.get(label.key)
        if cost is None:
            return self.weak[label.kind]
        # The `step` of an optimizer, of a scheduler and of a profiler differ by the package they are written in.
        package = label.package if cost == 0.0 else ()
        if package and self.home and package[:1] == self.home[:1] and package[:2] != self.home[:2]:
            return cost + _OTHER_PACKAGE
        return cost


@dataclass(slots=True)
class Automaton:
    """`actions[k]` is None where node k only joins paths. Node 0 is the entry, the last node the exit.

    Nodes are numbered in program order: every edge but a loop's back edge runs forward.
    """

    actions: list[Action | None] = field(default_factory=list)
    before: list[list[tuple[int, float]]] = field(default_factory=list)
    """For each node, (node that control comes from, cost)."""
    resumes: list[int] = field(default_factory=list)
    """Nodes where the frame may be suspended and go on later (`yield`, `await`)."""
