"""The evaluator as a whole: files, frames, and what its parts ask of one another."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from ..knowledge import Knowledge
from .calls import call_value, is_generator, parts_used
from .expressions import evaluate
from .heap import Budget, Heap, OutOfBudget, Raised
from .imports import Imports
from .layers import LAYERS
from .natives import BUILTINS
from .signatures import Arguments
from .statements import Flow, execute
from .values import (
    ClassValue,
    FileValue,
    Frame,
    FunctionValue,
    ImportValue,
    LibraryValue,
    ModuleValue,
    Names,
    Unknown,
    Value,
)

OnCall = Callable[[ModuleValue, Arguments, ast.AST, Frame], Value]
_STEPS_OF_FILE = 120_000
_STEPS_OF_STATEMENT = 2_000
_CHARACTERS_PER_STEP = 10
"""What parsing takes, in steps."""


class Machine:
    """Evaluates expressions and statements of a workspace without running anything."""

    def __init__(self, known: Knowledge, steps: int) -> None:
        self.known = known
        self.heap = Heap()
        self.budget = Budget(steps)
        self.built: list[ModuleValue] = []
        """Modules in the order in which their constructors were called."""
        self.constructing: list[ModuleValue] = []
        """The modules whose constructors are running, outermost first."""
        self.outermost: list[ModuleValue] = []
        """Modules of `built` that were built outside the constructors of others."""
        self.entered: set[ast.AST] = set()
        """Functions that were called."""
        self.on_call: OnCall | None = None
        """What a call of a module gives; without it, it is only noted."""
        self.imports = Imports(known.workspace.paths())
        self._files: dict[str, Frame] = {}
        self.spent = 0
        """Steps that files took."""
        self.is_cut = False
        """Whether the statements of a file were not run to their end."""
        self._parts_used: dict[ast.AST, frozenset[str]] = {}
        self._generators: dict[ast.AST, bool] = {}

    def note_module(self, made: ModuleValue) -> None:
        """Note a module whose constructor is called."""
        self.built.append(made)
        if not self.constructing:
            self.outermost.append(made)

    def cut(self, why: str) -> None:
        """Say of the module whose constructor is running that not all of it is followed: it may hold more."""
        if self.constructing:
            made = self.constructing[-1]
            made.problem = made.problem or why
            made.has_more = True

    def is_generator(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """Whether a function yields."""
        if node not in self._generators:
            self._generators[node] = is_generator(node)
        return self._generators[node]

    def parts_used(self, cls: ClassValue) -> frozenset[str]:
        """Attributes of `self` that the methods of a class call or go through."""
        if cls.node not in self._parts_used:
            self._parts_used[cls.node] = parts_used(cls)
        return self._parts_used[cls.node]

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an expression. Raises OutOfBudget, or Raised where the program would raise."""
        return evaluate(self, node, frame)

    def execute(self, body: Sequence[ast.stmt], frame: Frame) -> Flow:
        """Run statements; how they end. Raises as `evaluate` does."""
        return execute(self, body, frame)

    def call(self, callee: Value, given: Arguments, node: ast.AST, frame: Frame) -> Value:
        """What a call gives. `node` and `frame` say where it stands."""
        return call_value(self, callee, given, node, frame)

    def file(self, path: str) -> Frame:
        """The names of a file after its statements ran; what stands below `if __name__ == "__main__"` does not."""
        if path not in self._files:
            frame = Frame(path, Names())
            self._files[path] = frame  # before it runs: files import one another in circles
            frame.names["__name__"] = path.removesuffix(".py").replace("/", ".")
            frame.names["__file__"] = path
            source = self.known.file(path)
            if source.tree is not None:
                with self.heap.for_good():
                    self._run_file(source.tree, len(source.text), frame)
        return self._files[path]

    def _run_file(self, tree: ast.Module, length: int, frame: Frame) -> None:
        """Run a file's statements within a budget of its own; once that is used up, its definitions only."""
        outer, constructing = self.budget, self.constructing
        self.budget, self.constructing = Budget(_STEPS_OF_FILE, outer.depth + 1), []
        statements = iter(tree.body)
        try:
            for statement in statements:
                with suppress(Raised):
                    self.execute([statement], frame)
        except (OutOfBudget, RecursionError):
            self.is_cut = True
            self._define_rest(statements, frame)
        self.spent += _STEPS_OF_FILE - max(self.budget.steps, 0) + length // _CHARACTERS_PER_STEP
        self.budget, self.constructing = outer, constructing

    def _define_rest(self, statements: Iterator[ast.stmt], frame: Frame) -> None:
        """Bind what is defined and imported, decorators left aside, and what takes few steps."""
        for statement in statements:
            self.budget.steps = _STEPS_OF_STATEMENT
            if isinstance(statement, ast.ClassDef):
                frame.names[statement.name] = ClassValue(statement.name, frame.path, statement, frame)
            elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                frame.names[statement.name] = FunctionValue(frame.path, statement, frame, {})
            elif isinstance(statement, (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)):
                with suppress(OutOfBudget, Raised, RecursionError):
                    self.execute([statement], frame)

    def lookup(self, name: str, frame: Frame) -> Value:
        """What a name stands for in a frame."""
        current: Frame | None = frame
        while current is not None:
            if name in current.names:
                value = current.names[name]
                if isinstance(value, ImportValue):
                    value = self.imported(value, current.path)
                    current.names[name] = value
                return value
            current = current.parent
        if name in BUILTINS:
            return LibraryValue(f"builtins.{name}")
        for library in frame.file.star_imports:
            if not library.startswith("torch.nn") or name in LAYERS:
                return LibraryValue(f"{library}.{name}")
        return Unknown(f"{name} is not defined")

    def imported(self, value: ImportValue, importer: str) -> Value:
        """What an import gives: a file, a name of a file, or something of a library."""
        if value.level:
            path = self.imports.relative(value.dotted, value.level, importer)
            below = self.imports.relative(f"{value.dotted}.{value.name}".strip("."), value.level, importer)
        else:
            path = self.imports.absolute(value.dotted, importer)
            below = self.imports.absolute(f"{value.dotted}.{value.name}", importer) if value.name else ""
        if not value.name:
            return FileValue(path, self.file(path)) if path else LibraryValue(value.dotted)
        if path:
            frame = self.file(path)
            if value.name in frame.names or not below:
                return self.lookup(value.name, frame)
        if below:
            return FileValue(below, self.file(below))
        return (
            Unknown(f"{value.name} is not in the workspace")
            if value.level
            else LibraryValue(f"{value.dotted}.{value.name}")
        )
