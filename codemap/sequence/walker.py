"""Walks a program as it would run, noting which operators each of its calls and expressions shows as.

The evaluator of `building` says what values names have and which functions are called; the walker rides on it, adding
to a `Program` a node for every operator that a step may leave in a trace, in the order of execution. Where the source
does not tell which way it goes, both are followed; loops of unknown length lead back to their heads.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..automaton import NEVER
from ..building.classes import find
from ..building.heap import OutOfBudget, Raised
from ..building.machine import Machine
from ..building.objects import get_attribute
from ..building.signatures import Arguments
from ..building.statements import Flow
from ..building.values import (
    ClassValue,
    Frame,
    FunctionValue,
    LibraryValue,
    ModuleValue,
    Names,
    ObjectValue,
    PartialValue,
    TensorValue,
    Unknown,
    Value,
    join,
)
from ..knowledge import Knowledge
from .program import Expected, Inputs, Program, Site
from .within import NOWHERE

MOST_NODES = 8_000
"""A program that needs more is walked no further."""
_MOST_STEPS = 120_000
"""Statements and expressions that walking one program may take; small programs take some thousand."""
_MOST_FILES = 60
"""Files that are loaded because others import them."""
_MOST_INLINED = 22
_MOST_RECURSION = 2
SURE = 1.0
"""Cost of an operator that is sure to run and does not show."""
UNSURE = 0.15
"""The same where the operand may be a plain number."""


@dataclass(frozen=True, slots=True, eq=False)
class Number(Unknown):
    """A value that is not known and is no tensor: computing with it runs no operator."""


NUMBER = Number("a number")


@dataclass(frozen=True, slots=True, eq=False)
class Generated(Unknown):
    """What a generator function gave: each of its items is one of `yields`."""

    yields: tuple[Value, ...] = ()


@dataclass(slots=True)
class Here:
    """The function that is being walked."""

    path: str
    qualname: str = "<module>"
    function: ast.AST | None = None
    caller: Site | None = None
    statement: ast.AST = field(default_factory=ast.Pass)
    returns: list[int] = field(default_factory=list)
    """Nodes after which it returned."""
    yields: list[Value] = field(default_factory=list)
    """What it yielded."""


@dataclass(slots=True)
class Loop:
    """Where control leaves the body of the innermost loop other than at its end."""

    breaks: list[int]
    continues: list[int]


class Walker(Machine):
    """An evaluator that notes operators. While `muted`, it only evaluates."""

    def __init__(self, known: Knowledge) -> None:
        super().__init__(known, _MOST_STEPS)
        self.program = Program()
        self.at: list[int] = []
        """The nodes that control may have just left; none where it cannot come."""
        self.muted = 0
        self.here = Here("")
        self.node: ast.AST = ast.Pass()
        """The call or operator that is being evaluated."""
        self.loops: list[Loop] = []
        self.forwards = 0
        """How many `forward` methods are running."""
        self.cycles = 0
        """How many loops of unknown length are running."""
        self.within = NOWHERE
        """The modules that are being called, and the ranges that are open."""
        self.is_in_layer = False
        """Whether the innermost module is a library's."""
        self.yielded: Value = None
        """What the generator that was walked last yields."""
        self._running: list[ast.AST] = []
        self._loaded: set[str] = set()
        self.functions: dict[ClassValue, None] = {}
        """Hand-written `torch.autograd.Function` classes that were applied."""
        self._names: dict[str, Mapping[ast.AST, str]] = {}

    @property
    def taken(self) -> int:
        """Steps that walking took, the files that were loaded included."""
        return _MOST_STEPS - self.budget.steps + self.spent

    # What to walk

    def walk_script(self, path: str) -> None:
        """Walk a file as the program that is run."""
        tree = self.known.file(path).tree
        if tree is None:
            return
        with self.silence(), self._bounded():
            self._import_all(path)
        frame = Frame(path, Names())
        frame.names |= {"__name__": "__main__", "__file__": path}
        self.at = [self.program.add(None, ())]
        self.program.starts.append(self.at[0])
        self.here = Here(path)
        with self._bounded():
            self.execute(tree.body, frame)
        self._walk_backwards()

    def walk_calls(self, calls: Iterable[tuple[Value, Arguments]]) -> None:
        """Walk each of the calls by itself, in any order and again and again."""
        hub = self.program.add(None, ())
        self.program.starts.append(hub)
        for callee, given in calls:
            if len(self.program.nodes) > MOST_NODES // 2:
                break
            self.at = [self.program.add(None, [hub])]
            self.program.starts += self.at
            with self._bounded():
                self.call(callee, given, ast.Pass(), Frame("", Names()))
            self.program.link(self.at, hub)
        self._walk_backwards()

    def _walk_backwards(self) -> None:
        """Walk the hand-written backward passes, each by itself: they run inside the backward pass of the whole."""
        self.here = Here("")
        for cls in self.functions:
            backward = find(self, cls, "backward")
            self.at = [self.program.add(None, ())]
            if isinstance(backward, FunctionValue):
                self.program.starts += self.at
                with self._bounded():
                    self.call(backward, Arguments(is_open=True), ast.Pass(), Frame(cls.path, Names()))

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        depth = self.budget.depth
        try:
            yield
        except (OutOfBudget, Raised, RecursionError):
            self.muted = self.cycles = self.forwards = 0
            self.within, self.is_in_layer = NOWHERE, False
            self.loops, self._running = [], []
        self.budget.depth = depth

    # What the evaluator asks

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an expression, with its operators noted."""
        from .operands import walk_expression

        if self.muted:
            value = super().evaluate(node, frame)
            if isinstance(node, ast.Attribute) and node.attr == "apply":
                return self._applied(super().evaluate(node.value, frame), value)
            return value
        function = frame.function
        if function is not None and node is function.node.body and self.here.function is not function.node:
            found: list[Value] = []
            self.run_inlined(function, lambda: found.append(walk_expression(self, node, frame)))
            return found[0] if found else Unknown("calls too deep to follow")
        return walk_expression(self, node, frame)

    def execute(self, body: Sequence[ast.stmt], frame: Frame) -> Flow:
        """Run statements, with their operators noted."""
        from .flow import walk_block

        if self.muted:
            return super().execute(body, frame)
        function = frame.function
        if function is not None and body is function.node.body:
            flows: list[Flow] = []
            self.run_inlined(function, lambda: flows.append(walk_block(self, body, frame)))
            if not flows:
                frame.value = Unknown("calls too deep to follow")
            return flows[0] if flows else Flow.RETURN
        return walk_block(self, body, frame)

    def call(self, callee: Value, given: Arguments, node: ast.AST, frame: Frame) -> Value:
        """What a call gives, with the operators that it runs noted."""
        from .running import walk_call

        kept = self.node
        if isinstance(node, (ast.expr, ast.stmt)):
            self.node = node
        try:
            return walk_call(self, callee, given, frame)
        finally:
            self.node = kept

    def file(self, path: str) -> Frame:
        """The names of a file; what importing it runs is no part of a step."""
        is_new = path not in self._loaded
        self._loaded.add(path)
        with self.silence():
            frame = super().file(path)
            if is_new:
                self._import_all(path)
            return frame

    def _import_all(self, path: str) -> None:
        """Load what a file imports of the workspace: it may enter its models in a registry."""
        tree = self.known.file(path).tree
        for statement in tree.body if tree is not None else ():
            if isinstance(statement, ast.ImportFrom):
                module = statement.module or ""
                self._import(module, statement.level, path)
                for alias in statement.names:
                    self._import(f"{module}.{alias.name}".strip("."), statement.level, path)
            elif isinstance(statement, ast.Import):
                for alias in statement.names:
                    self._import(alias.name, 0, path)

    def _import(self, dotted: str, level: int, importer: str) -> None:
        files = self.imports
        path = files.relative(dotted, level, importer) if level else files.absolute(dotted, importer)
        if path and len(self._loaded) < _MOST_FILES:
            self.file(path)

    # What the parts of the walker ask

    def evaluated(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an expression whose operators are noted elsewhere."""
        with self.silence():
            return super().evaluate(node, frame)

    def called(self, callee: Value, given: Arguments, frame: Frame) -> Value:
        """What a call gives whose operators are noted elsewhere."""
        with self.silence():
            return super().call(callee, given, self.node, frame)

    def plain_call(self, callee: Value, given: Arguments, frame: Frame) -> Value:
        """What a call gives, as the evaluator follows it."""
        return super().call(callee, given, self.node, frame)

    def attribute(self, held: Value, node: ast.Attribute, frame: Frame) -> Value:
        """`held.attr`; a property's body is part of the program."""
        kept, self.node = self.node, node
        try:
            if isinstance(held, Unknown) and not isinstance(held, Number):
                choices = [one for one in held.alternatives if isinstance(one, (ModuleValue, ObjectValue))]
                if choices:
                    return join([get_attribute(self, one, node.attr, node, frame) for one in _differing(choices)])
            return self._applied(held, get_attribute(self, held, node.attr, node, frame))
        finally:
            self.node = kept

    def _applied(self, held: Value, value: Value) -> Value:
        """`Function.apply` with the class that it was taken from, wherever it is handed on to."""
        is_apply = (
            isinstance(value, LibraryValue) and value.dotted.startswith("torch.autograd.") and value.name == "apply"
        )
        return PartialValue(value, (held,), {}) if is_apply and isinstance(held, ClassValue) else value

    def plain_execute(self, statement: ast.stmt, frame: Frame) -> Flow:
        """A statement as the evaluator runs it."""
        return super().execute([statement], frame)

    def plain_evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """An expression as the evaluator follows it."""
        return super().evaluate(node, frame)

    @contextmanager
    def silence(self) -> Iterator[None]:
        """Evaluate without noting."""
        self.muted += 1
        try:
            yield
        finally:
            self.muted = max(self.muted - 1, 0)

    def run_inlined(self, function: FunctionValue, run: Callable[[], object]) -> None:
        """Run the body of a function as part of the statement that calls it; not if that leads too deep."""
        node = function.node
        if len(self._running) >= _MOST_INLINED or self._running.count(node) >= _MOST_RECURSION:
            self.wildcard()
            return
        outer, loops, outer_node = self.here, self.loops, self.node
        first = node.body if isinstance(node, ast.Lambda) else node
        self.here = Here(function.path, self._qualname(function), node, self.site(), first)
        self.node, self.loops = first, []
        self._running.append(node)
        try:
            run()
            self.at = [*self.at, *self.here.returns]
        finally:
            self._running.pop()
            self.yielded = join(self.here.yields[:6]) if self.here.yields else Unknown("an item of a generator")
            self.here, self.loops, self.node = outer, loops, outer_node

    def site(self, node: ast.AST | None = None) -> Site:
        """Where control is."""
        here = self.here
        return Site(here.path, here.qualname, here.statement, node or self.node, here.caller, here.function)

    def note(
        self,
        names: Iterable[str] | Mapping[str, float],
        skip: float = 0.0,
        repeat: float = NEVER,
        *,
        anything: float = NEVER,
        inputs: Inputs | None = None,
        node: ast.AST | None = None,
    ) -> None:
        """Add an operator that runs now."""
        if self.muted or not self.at:
            return
        if len(self.program.nodes) >= MOST_NODES:
            raise OutOfBudget
        costs = names if isinstance(names, Mapping) else dict.fromkeys(names, 0.0)
        is_open = self.is_in_layer or anything < NEVER
        expected = Expected(self.site(node), costs, anything, skip, repeat, inputs, self.within, is_open)
        self.at = [self.program.add(expected, self.at)]

    def join_nodes(self, at: Iterable[int]) -> None:
        """Let control come from any of several nodes."""
        self.at = list(dict.fromkeys(at))
        if len(self.at) > 4:
            self.at = [self.program.add(None, self.at)]

    def wildcard(self, cost: float = 0.3, skip: float = 0.3, names: Iterable[str] = ()) -> None:
        """Code that cannot be seen runs here: it may show as anything."""
        self.note(names, skip, cost, anything=cost)

    def _qualname(self, function: FunctionValue) -> str:
        if function.path not in self._names:
            functions = self.known.file(function.path).functions
            self._names[function.path] = {one.node: one.qualname for one in functions}
        return self._names[function.path].get(function.node, function.name)


def may_be_tensor(value: Value) -> bool:
    """Whether computing with a value may run an operator."""
    if isinstance(value, Unknown):
        if isinstance(value, Number):
            return False
        known = [one for one in value.alternatives if not isinstance(one, Unknown)]
        return not known or any(isinstance(one, TensorValue) for one in known)
    return isinstance(value, TensorValue)


def _differing(objects: list[ModuleValue | ObjectValue]) -> list[ModuleValue | ObjectValue]:
    """Without objects of a class that others are of too; modules of one class may differ in their sizes."""
    found: list[ModuleValue | ObjectValue] = []
    for one in objects:
        if isinstance(one, ModuleValue) or not any(one.cls is other.cls for other in found):
            found.append(one)
    return found


def holds_objects(value: Value, depth: int = 3) -> bool:
    """Whether a value is, or holds, modules or tensors: going through such a sequence is part of the model."""
    if isinstance(value, (ModuleValue, TensorValue)) or (isinstance(value, ObjectValue) and value.cls is not None):
        return True
    if depth and isinstance(value, (list, tuple)):
        return any(holds_objects(item, depth - 1) for item in value[:16])
    if depth and isinstance(value, dict):
        return any(holds_objects(item, depth - 1) for item in list(value.values())[:16])
    return False
