"""The models that a workspace builds."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from ..nodes import children
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
    Unknown,
    Value,
)

MOST_LEVELS = 60
"""Modules that lie deeper in one another are left out: who walks a tree by recursion needs frames for each."""
MOST_ROOTS = 200
_BUILDERS = ("build", "make", "create", "get", "_create", "_make", "_build", "_get")
_LOSSES = ("Loss", "Criterion", "Metric")
GIVEN_UP = Unknown("took too long to work out")


def limited(machine: Machine, budget: Budget, ask: Callable[[], Value]) -> Value:
    """The answer to a question that has a budget of its own; `Unknown` where that does not do."""
    outer, constructing = machine.budget, list(machine.constructing)
    machine.budget = budget
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

    def __init__(self, machine: Machine, paths: Sequence[str], steps: int, steps_of_one: int) -> None:
        self._machine = machine
        self._paths = sorted(paths, key=lambda path: (not self._is_script(path), path))
        self._left = steps
        self._steps_of_one = steps_of_one
        self.is_cut = False

    def run(self) -> tuple[ModuleValue, ...]:
        """The models, those first that scripts build, then those that functions build which nothing calls, then the
        module classes that nothing builds."""
        self._left, kept = self._left // 2, self._left // 2
        frames = [frame for path in self._paths if (frame := self._file(path)) is not None]
        for frame in frames:
            self._run_script(frame)
        self._left += kept
        for needs_arguments in (False, True):
            for frame in frames:
                self._call_functions(frame, needs_arguments=needs_arguments)
        found = self._standing_alone(self._machine.outermost)
        built = {id(module.cls) for module in self._machine.built if module.cls is not None}
        defaults = [made for frame in frames for made in self._unbuilt(frame, built)]
        inner = self._inside(self._machine.built)
        classes = {id(module.cls) for module in self._machine.built if id(module) in inner}
        rest = [made for made in defaults if id(made.cls) not in classes and id(made) not in inner]
        for made in defaults:
            # Classes that build one another are all inside another one: the first stands for them.
            below = {id(one.cls) for _, one, _ in descendants(made) if one is not made}
            if id(made.cls) in below and not self._hold([*found, *rest], made):
                rest.append(made)
        self.is_cut |= self._machine.is_cut
        return tuple([*found, *rest][:MOST_ROOTS])

    def _is_script(self, path: str) -> bool:
        return "__main__" in (self._machine.known.workspace.text(path) or "")

    def _ask(self, question: Callable[[], Value]) -> Value:
        """Ask within what is left for all questions."""
        allowed = min(self._left, self._steps_of_one)
        if allowed <= 0:
            self.is_cut = True
            return GIVEN_UP
        budget, spent = Budget(allowed), self._machine.spent
        found = limited(self._machine, budget, question)
        self._left -= allowed - budget.steps + self._machine.spent - spent
        self.is_cut |= found is GIVEN_UP
        return found

    def _file(self, path: str) -> Frame | None:
        found = self._ask(lambda: self._machine.file(path))
        return found if isinstance(found, Frame) else None

    def _run_script(self, frame: Frame) -> None:
        """What stands below `if __name__ == "__main__"`."""
        tree = self._machine.known.file(frame.path).tree
        for statement in tree.body if tree is not None else ():
            if isinstance(statement, ast.If) and "__main__" in ast.dump(statement.test):
                frame.names["__name__"] = "__main__"
                self._ask(lambda statement=statement: self._machine.execute([statement], frame))

    def _call_functions(self, frame: Frame, *, needs_arguments: bool) -> None:
        """Functions of the top level that nothing called, if they build a module."""
        tree = self._machine.known.file(frame.path).tree
        for node in tree.body if tree is not None else ():
            if not isinstance(node, ast.FunctionDef) or node in self._machine.entered:
                continue
            if _needs_arguments(node) is needs_arguments and self._builds(node, frame):
                function = frame.names.get(node.name)
                self._ask(lambda function=function, node=node: self._machine.call(function, Arguments(), node, frame))

    def _builds(self, function: ast.FunctionDef, frame: Frame) -> bool:
        """Whether a function names a module class, or calls a function of the workspace with "model" in its name."""
        for node in names_in(function):
            if isinstance(node, ast.Name) and not (node.id[:1].isupper() or node.id.startswith(_BUILDERS)):
                continue
            if isinstance(node, ast.Attribute) and not node.attr[:1].isupper():
                continue
            value = self._ask(lambda node=node: self._machine.evaluate(node, frame))
            if isinstance(value, ClassValue) and is_module_class(self._machine, value):
                return True
            if isinstance(value, FunctionValue) or (
                isinstance(value, LibraryValue) and layer_name(value.dotted) in ("Sequential", "ModuleList")
            ):
                return True
        return False

    def _unbuilt(self, frame: Frame, built: set[int]) -> Iterator[ModuleValue]:
        """Instances of the module classes of a file that nothing built."""
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
        """Those that no other module holds, each once; of a class that was also built with known sizes only these."""
        inner = self._inside(self._machine.built)
        alone = [module for module in modules if id(module) not in inner and self._is_model(module)]
        sized = {module for module in alone if has_known_sizes(module)}
        known = {_kind(module) for module in sized}
        found: dict[tuple[object, ...], ModuleValue] = {}
        for module in alone:
            if _kind(module) not in known or module in sized:
                arguments = [(name, value) for name, value in module.arguments.items() if _is_short(value)]
                found.setdefault((_kind(module), repr(arguments)), module)
        return list(found.values())

    def _inside(self, modules: list[ModuleValue]) -> set[int]:
        """Those that another one holds. One that refers to itself, or to a module round it, does not hold that."""
        order = {id(module): at for at, module in enumerate(modules)}
        found: set[int] = set()
        for module in modules:
            for child in (child for value in module.attributes.values() for child in modules_in(value, 2)):
                if id(child) in found or child is module:
                    continue
                is_earlier = order.get(id(child), len(modules)) < order[id(module)]
                if not (is_earlier and any(one is module for _, one, _ in descendants(child))):
                    found.add(id(child))
        return found

    def _hold(self, roots: Sequence[ModuleValue], made: ModuleValue) -> bool:
        """Whether a module of the same class is one of the roots, or below one."""
        return any(one.cls is made.cls for root in roots for _, one, _ in descendants(root))

    def _is_model(self, module: ModuleValue) -> bool:
        if module.name.endswith(_LOSSES):
            return False
        return module.cls is not None or module.is_opaque or has_tensors(module)


def _kind(module: ModuleValue) -> tuple[int, str]:
    return id(module.cls), module.dotted


def _is_short(value: Value) -> bool:
    return (
        value is None or isinstance(value, (int, float, str)) or (isinstance(value, (list, tuple)) and len(value) < 20)
    )


def _needs_arguments(function: ast.FunctionDef) -> bool:
    node = function.args
    positional = len(node.posonlyargs) + len(node.args)
    return positional > len(node.defaults) or None in node.kw_defaults


def names_in(node: ast.AST) -> Iterator[ast.Name | ast.Attribute]:
    """The names and attributes below a node."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, (ast.Name, ast.Attribute)):
            yield current
        waiting.extend(children(current))


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
    """A module and those below it as `named_modules()` gives them: path, module, whether it is certain; each once."""
    seen: set[int] = set()
    waiting: list[tuple[str, Child]] = [("", Child("", module))]
    while waiting:
        path, child = waiting.pop()
        if id(child.module) in seen:
            continue
        seen.add(id(child.module))
        yield path, child.module, child.is_certain
        if path.count(".") >= MOST_LEVELS:
            continue
        below = [
            (
                f"{path}.{one.name}" if path else one.name,
                Child(one.name, one.module, one.is_certain and child.is_certain),
            )
            for one in child.module.children()
        ]
        waiting.extend(reversed(below))


def has_tensors(module: ModuleValue) -> bool:
    """Whether a module or one below it, however deep, has a parameter or buffer."""
    return any(True for current in module.walk() for _ in current.tensors())


def has_known_sizes(module: ModuleValue) -> bool:
    """Whether everything about a model's parameters is known: which modules there are, and all shapes."""
    for _, one, is_certain in descendants(module):
        if (
            not is_certain
            or one.has_more
            or one.is_opaque
            or one.problem
            or any(value.sizes is None for _, value in one.tensors())
        ):
            return False
    return True
