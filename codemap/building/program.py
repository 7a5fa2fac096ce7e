"""What a workspace builds: its models."""

from __future__ import annotations

from typing import Protocol

from ..knowledge import Knowledge
from .classes import find
from .heap import Budget
from .machine import Machine
from .roots import RootSearch, limited
from .values import FunctionValue, ModuleValue

STEPS = 600_000
"""Statements and expressions that finding the models may take, all together; two or three seconds."""
STEPS_OF_ONE = 200_000
"""Those that one file, function or class may take."""
STEPS_OF_QUESTION = 20_000
"""Those that looking up a method may take."""


class Files(Protocol):
    """The files to look for models in."""

    def paths(self) -> tuple[str, ...]:
        """Their paths, relative to the workspace."""
        ...


class Program:
    """The models that a workspace builds, found when first asked for."""

    def __init__(self, known: Knowledge, files: Files) -> None:
        self.known = known
        self.is_cut = False
        """Whether something took too long to be followed to its end while the models were looked for."""
        self._files = files
        self._machine: Machine | None = None
        self._roots: tuple[ModuleValue, ...] | None = None

    @property
    def machine(self) -> Machine:
        """The evaluator behind it."""
        if self._machine is None:
            self._machine = Machine(self.known, STEPS_OF_QUESTION)
        return self._machine

    def roots(self) -> tuple[ModuleValue, ...]:
        """The models, those first that scripts build, then those that functions build which nothing calls, then the
        module classes that nothing builds (`node` is None)."""
        if self._roots is None:
            search = RootSearch(self.machine, self._files.paths(), STEPS, STEPS_OF_ONE)
            self._roots = search.run()
            self.is_cut = search.is_cut
        return self._roots

    def method(self, module: ModuleValue, name: str) -> FunctionValue | None:
        """A method of a module's class as Python would find it; None if it is a library's."""
        cls = module.cls
        if cls is None:
            return None
        found = limited(self.machine, Budget(STEPS_OF_QUESTION), lambda: find(self.machine, cls, name))
        return found if isinstance(found, FunctionValue) else None
