"""What a workspace builds: its models, and the values that expressions of its code have."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..index import ClassFacts
from ..knowledge import Knowledge
from .classes import find
from .heap import Budget
from .machine import Machine
from .operators import items_of, truth
from .roots import RootSearch, limited
from .signatures import Arguments, bind, signature_of
from .statements import assign
from .values import ClassValue, Frame, FunctionValue, ModuleValue, Names, Value

STEPS = 600_000
"""Statements and expressions that finding the models may take, all together; two or three seconds."""
STEPS_OF_ONE = 200_000
"""Those that one file, function or class may take."""
STEPS_OF_QUESTION = 20_000


class Files(Protocol):
    """The files to look for models in."""

    def paths(self) -> tuple[str, ...]:
        """Their paths, relative to the workspace."""
        ...


@dataclass(frozen=True, slots=True)
class Scope:
    """Where an expression stands: inside a method of a module, or inside a function. Made by `Program`."""

    frame: Frame


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

    def named(self, path: str, name: str) -> Value:
        """What a name of a file's top level stands for."""
        return limited(self.machine, Budget(STEPS_OF_ONE), lambda: self.machine.lookup(name, self.machine.file(path)))

    def build(self, cls: ClassValue, given: Arguments | None = None) -> ModuleValue | None:
        """An instance of a class, with its own defaults for what is not given; None if it is no module."""
        value = limited(
            self.machine,
            Budget(STEPS_OF_ONE),
            lambda: self.machine.call(cls, given or Arguments(), cls.node, cls.frame),
        )
        return value if isinstance(value, ModuleValue) else None

    def class_facts(self, cls: ClassValue) -> ClassFacts | None:
        """What the file's index says of a class."""
        return self.known.index(cls.path).classes.get(cls.name)

    def method(self, module: ModuleValue, name: str) -> FunctionValue | None:
        """A method of a module's class as Python would find it; None if it is a library's."""
        cls = module.cls
        if cls is None:
            return None
        found = limited(self.machine, Budget(STEPS_OF_QUESTION), lambda: find(self.machine, cls, name))
        return found if isinstance(found, FunctionValue) else None

    def method_scope(self, module: ModuleValue, name: str, given: Arguments | None = None) -> Scope | None:
        """Inside a method of a module, `self` bound to it. Parameters have the values given, else their defaults, else
        they are unknown. None if no class of the workspace has the method."""
        function = self.method(module, name)
        if function is None:
            return None
        rest = given or Arguments()
        return self.function_scope(function, Arguments([module, *rest.args], rest.kwargs, rest.is_open))

    def function_scope(self, function: FunctionValue, given: Arguments | None = None) -> Scope:
        """Inside a function."""
        names = Names(bind(signature_of(function.node.args), given or Arguments(), function.defaults))
        return Scope(Frame(function.path, names, function.frame, function, function.owner))

    def file_scope(self, path: str) -> Scope:
        """At the top level of a file."""
        found = limited(self.machine, Budget(STEPS_OF_ONE), lambda: self.machine.file(path))
        return Scope(found if isinstance(found, Frame) else Frame(path, Names()))

    def evaluate(self, expression: ast.expr, scope: Scope) -> Value:
        """The value of an expression; `Unknown` where the source does not tell. Modules that it calls are not run."""
        return limited(self.machine, Budget(STEPS_OF_QUESTION), lambda: self.machine.evaluate(expression, scope.frame))

    def execute(self, statements: Sequence[ast.stmt], scope: Scope) -> None:
        """Run statements for what they do to the names of a scope, and to the objects that they change."""
        limited(self.machine, Budget(STEPS_OF_QUESTION), lambda: self.machine.execute(statements, scope.frame))

    def bind(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Bind the target of an assignment or a loop."""
        limited(self.machine, Budget(STEPS_OF_QUESTION), lambda: assign(self.machine, target, value, scope.frame))

    def items(self, value: Value) -> list[Value] | None:
        """The items that a loop over a value goes through, `MORE` at the end where further ones follow; None if they
        are not known."""
        found = limited(self.machine, Budget(STEPS_OF_QUESTION), lambda: items_of(self.machine, value))
        return found if isinstance(found, list) else None

    def truth(self, value: Value) -> bool | None:
        """Whether a value counts as true; None if that is not known."""
        return truth(value)
