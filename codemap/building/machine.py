"""The evaluator as a whole: files, frames, and what its parts ask of one another."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from ..knowledge import Knowledge
from .calls import call_value
from .expressions import evaluate
from .heap import Budget, Heap, Raised
from .imports import Imports
from .layers import LAYERS
from .natives import BUILTINS
from .signatures import Arguments
from .statements import Flow, execute
from .values import FileValue, Frame, ImportValue, LibraryValue, ModuleValue, Names, Unknown, Value

OnCall = Callable[[ModuleValue, Arguments, ast.AST, Frame], Value]
MOST_DEPTH = 28
"""Calls inside one another that are followed: each takes some ten frames of Python's own stack."""


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
            tree = self.known.file(path).tree
            if tree is not None:
                depth, self.budget.depth = self.budget.depth, self.budget.depth + 1
                self._run_file(tree, frame)
                self.budget.depth = depth
        return self._files[path]

    def _run_file(self, tree: ast.Module, frame: Frame) -> None:
        for statement in tree.body:
            try:
                self.execute([statement], frame)
            except Raised:
                continue

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
