"""The automaton that `grammar.py` compiles a function into and `align.py` walks: actions joined by control flow."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from .labels import Label

NEVER = float("inf")

_OTHER_PACKAGE = 0.4
_OWN_PACKAGE = 0.2
"""Cost of a function of any name in the package of the one called: a decorator's, most often."""

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
    package: tuple[str, ...] = ()
    """Package of the function that is called, where known: `("torch", "nn", "utils")`."""

    def cost(self, label: Label) -> float:
        """Cost of showing as an event with this label."""
        cost = self.exact.get(label.key)
        if cost is None:
            cost = self.weak[label.kind]
        elif cost == 0.0:
            # The `step` of an optimizer, of a scheduler and of a profiler differ by the package they are written in.
            package = label.package if self.home else ()
            is_other = package[:1] == self.home[:1] and package[:2] != self.home[:2]
            return cost + _OTHER_PACKAGE if package and is_other else cost
        own = self.package or self.home
        if cost > _OWN_PACKAGE and len(own) > 1 and label.package[: len(own)] == own:
            return _OWN_PACKAGE
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
