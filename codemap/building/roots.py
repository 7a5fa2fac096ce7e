"""The models that a workspace builds."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from .classes import is_module_class
from .heap import Budget, OutOfBudget, Raised
from .layers import layer_name
from .machine import Machine
from .signatures import Arguments
from .values import (
    Child,
    ClassValue,
    Frame,
    FunctionValue,
    LibraryValue,
    ModuleValue,
    ObjectValue,
    TensorValue,
    Unknown,
    Value,
)

MOST_ROOTS = 200
_LOSSES = ("Loss", "Criterion", "Metric")
GIVEN_UP = Unknown("took too long to work out")


def limited(machine: Machine, steps: int, ask: Callable[[], Value]) -> Value:
    """The answer to a question that may take so many steps; they do not count for the others."""
    outer, constructing = machine.budget, list(machine.constructing)
    machine.budget = Budget(steps)
    try:
        return ask()
    except Raised:
        return Unknown("raises")
    except (OutOfBudget, RecursionError):
        return GIVEN_UP
    finally:
        machine.budget = outer
        machine.constructing[:] = constructing


class RootSearch:
    """Runs what the files would run, and looks at which modules that leaves."""

    def __init__(self, machine: Machine, paths: tuple[str, ...], steps: int, steps_of_one: int) -> None:
        self._machine = machine
        self._paths = paths
        self._left = steps
        self._steps_of_one = steps_of_one
        self.is_cut = False

    def run(self) -> tuple[ModuleValue, ...]:
        """The models, those first that scripts build, then those that functions build which nothing calls, then the
        module classes that nothing builds."""
        frames = [frame for path in self._paths if (frame := self._file(path)) is not None]
        for frame in frames:
            self._run_script(frame)
        for frame in frames:
            self._call_functions(frame)
        found = self._standing_alone(self._machine.outermost)
        built = {id(module.cls) for module in self._machine.built if module.cls is not None}
        defaults = [made for frame in frames for made in self._unbuilt(frame, built)]
        inner = self._inside(self._machine.built)
        classes = {id(module.cls) for module in self._machine.built if id(module) in inner}
        rest = [made for made in defaults if id(made.cls) not in classes and id(made) not in inner]
        return tuple([*found, *rest][:MOST_ROOTS])

    def _ask(self, question: Callable[[], Value]) -> Value:
        """Ask within what is left for all questions."""
        allowed = min(self._left, self._steps_of_one)
        if allowed <= 0:
            self.is_cut = True
            return GIVEN_UP
        used = [0]

        def ask() -> Value:
            budget = self._machine.budget
            try:
                return question()
            finally:
                used[0] = allowed - budget.steps

        found = limited(self._machine, allowed, ask)
        self._left -= used[0]
        self.is_cut |= found is GIVEN_UP
        return found

    def _file(self, path: str) -> Frame | None:
        found = self._ask(lambda: self._machine.file(path))
        return self._machine.file(path) if isinstance(found, Frame) else None

    def _run_script(self, frame: Frame) -> None:
        """What stands below `if __name__ == "__main__"`."""
        tree = self._machine.known.file(frame.path).tree
        for statement in tree.body if tree is not None else ():
            if isinstance(statement, ast.If) and "__main__" in ast.dump(statement.test):
                frame.names["__name__"] = "__main__"
                self._ask(lambda statement=statement: self._machine.execute([statement], frame))

    def _call_functions(self, frame: Frame) -> None:
        """Functions of the top level that nothing called, if they build a module."""
        for value in list(frame.names.values()):
            if not isinstance(value, FunctionValue) or value.frame is not frame or isinstance(value.node, ast.Lambda):
                continue
            if value.node not in self._machine.entered and self._builds(value, frame):
                self._ask(lambda value=value: self._machine.call(value, Arguments(), value.node, frame))

    def _builds(self, function: FunctionValue, frame: Frame) -> bool:
        """Whether a function calls a module class by a name of its file."""
        for node in ast.walk(function.node):
            if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
                callee = self._ask(lambda node=node: self._machine.evaluate(node.func, frame))
                if isinstance(callee, ClassValue) and is_module_class(self._machine, callee):
                    return True
                if isinstance(callee, LibraryValue) and layer_name(callee.dotted) == "Sequential":
                    return True
        return False

    def _unbuilt(self, frame: Frame, built: set[int]) -> Iterator[ModuleValue]:
        """Instances of the module classes of a file that nothing built and no other class derives from."""
        for cls in list(frame.names.values()):
            if not isinstance(cls, ClassValue) or cls.frame is not frame or id(cls) in built:
                continue
            if self._ask(lambda cls=cls: is_module_class(self._machine, cls)) is not True:
                continue
            made = self._ask(lambda cls=cls: self._machine.call(cls, Arguments(), cls.node, frame))
            if isinstance(made, ModuleValue) and self._is_model(made):
                made.node = None
                yield made

    def _standing_alone(self, modules: list[ModuleValue]) -> list[ModuleValue]:
        """Those that no other module holds, one for each call that builds it."""
        inner = self._inside(self._machine.built)
        found: dict[tuple[int, int], ModuleValue] = {}
        for module in modules:
            if id(module) not in inner and self._is_model(module):
                found.setdefault((id(module.node), id(module.cls)), module)
        return list(found.values())

    def _inside(self, modules: list[ModuleValue]) -> set[int]:
        return {
            id(child) for module in modules for value in module.attributes.values() for child in modules_in(value, 2)
        }

    def _is_model(self, module: ModuleValue) -> bool:
        if module.name.endswith(_LOSSES):
            return False
        return module.cls is not None or module.is_opaque or has_tensors(module)


def modules_in(value: Value, depth: int) -> Iterator[ModuleValue]:
    """The modules of a value: itself, what it may be, the items of a plain list or dict."""
    if isinstance(value, ModuleValue):
        yield value
    elif depth and isinstance(value, Unknown):
        for one in value.alternatives:
            yield from modules_in(one, depth - 1)
    elif depth and isinstance(value, (list, tuple)):
        for one in value:
            yield from modules_in(one, depth - 1)
    elif depth and isinstance(value, dict):
        for one in value.values():
            yield from modules_in(one, depth - 1)
    elif depth and isinstance(value, ObjectValue):
        for one in value.attributes.values():
            yield from modules_in(one, depth - 1)


def descendants(module: ModuleValue) -> Iterator[tuple[str, ModuleValue, bool]]:
    """A module and all below it as `named_modules()` gives them: path, module, whether it is certain; each once."""
    seen: set[int] = set()
    waiting: list[tuple[str, Child]] = [("", Child("", module))]
    while waiting:
        path, child = waiting.pop()
        if id(child.module) in seen:
            continue
        seen.add(id(child.module))
        yield path, child.module, child.is_certain
        below = [
            (
                f"{path}.{one.name}" if path else one.name,
                Child(one.name, one.module, one.is_certain and child.is_certain),
            )
            for one in child.module.children()
        ]
        waiting.extend(reversed(below))


def has_tensors(module: ModuleValue) -> bool:
    """Whether a module or one below it has a parameter or buffer."""
    return any(isinstance(value, TensorValue) for _, one, _ in descendants(module) for _, value in one.tensors())
