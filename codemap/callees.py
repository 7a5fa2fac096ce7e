"""What a call may show as in a trace, by what the source says of the callee."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable

from . import operators
from .automaton import NEVER, Action, Weak
from .index import ClassFacts, FileIndex
from .source import Function

_NUMBERS = frozenset({"int", "float", "bool", "complex"})
_TYPES = frozenset(name for name, value in vars(builtins).items() if isinstance(value, type)) - _NUMBERS
_BUILTINS = frozenset(name for name, value in vars(builtins).items() if callable(value)) - _TYPES - _NUMBERS
_NUMERIC_LIBRARIES = frozenset({"numpy", "math", "scipy", "cv2", "PIL", "random", "time", "os"})

_CONSTRUCTOR = {"f:__init__": 0.0, "f:__new__": 0.0, "f:__call__": 0.3, "f:__post_init__": 0.1}
_MAYBE_CONSTRUCTOR = {"f:__init__": 0.15, "f:__new__": 0.15}
_CONSUMES = {**operators.ITERATE, **operators.NEXT, "f:__hash__": 0.1, "f:__eq__": 0.1}
_WRAPPERS = {
    f"f:{name}": 0.35
    for name in (
        "wrapper",
        "inner",
        "fn",
        "wrapped",
        "_wrapper",
        "_wrapped",
        "_fn",
        "compile_wrapper",
        "decorate_context",
    )
} | {"f:decorate_autocast": 0.35, "f:helper": 0.35, "f:__torch_function__": 0.35}
"""What decorators name their inner function, most often."""


def call_action(node: ast.Call, statement: ast.AST, index: FileIndex, owner: ClassFacts | None) -> Action:
    """The action of one call."""
    function = node.func
    if isinstance(function, ast.Name):
        exact, weak, skip, repeat = _named(node, function.id, index)
    elif isinstance(function, ast.Attribute):
        exact, weak, skip, repeat = _attribute(function, index, owner)
    else:
        exact, weak, skip, repeat = {"f:__call__": 0.1}, (0.4, 0.8, 0.1, 1.2), 0.5, NEVER
    return Action(node, statement, exact, weak, skip, repeat, _home(function, index), _package(function, index))


def _package(function: ast.expr, index: FileIndex) -> tuple[str, ...]:
    """The package of an imported function: `("torch", "nn", "utils")` of `torch.nn.utils.clip_grad_norm_`."""
    head = _head(function)
    if head not in index.imports:
        return ()
    return tuple(index.dotted(function).split(".")[:-1])


def _home(function: ast.expr, index: FileIndex) -> tuple[str, ...]:
    """The package of the object that a method is called on, by the call that the variable was assigned from."""
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return ()
    origin = index.origins.get(function.value.id, "")
    package, _, name = origin.rpartition(".")
    # What a function returns may come from anywhere; a class's methods stand in its package.
    is_class = name[:1].isupper() or package == "torch.profiler"
    return tuple(package.split(".")) if is_class else ()


_Costs = tuple[dict[str, float], Weak, float, float]
"""exact, weak (frame, built-in, module, operator), skip, repeat."""


def _named(node: ast.Call, name: str, index: FileIndex) -> _Costs:
    """A call of a bare name."""
    if functions := [f for f in index.functions.get(name, ()) if f.node not in index.owner]:
        return _function(name, functions, index)
    if name in index.classes:
        return {**_CONSTRUCTOR, f"f:{name}": 0.0}, (1.2, NEVER, 1.5, 1.2), 0.1, 0.05
    if origin := index.imports.get(name):
        return _imported(name, origin)
    if name in _NUMBERS:
        return operators.NUMBER, (0.8, NEVER, NEVER, 1.2), 0.05, NEVER
    if name in _TYPES:
        generators = {f"f:{_callee_name(part)}": 0.1 for part in ast.walk(node) if isinstance(part, ast.Call)}
        exact = {**_CONSUMES, **operators.FORMAT, **generators} if name != "super" else {}
        return exact, (0.9, 1.5, NEVER, NEVER), 0.0, 0.15
    if name in _BUILTINS:
        consumed = {"f:__len__": 0.1, "f:__iter__": 0.1, "f:__next__": 0.1} if name in ("len", "iter", "next") else {}
        return {f"b:{name}": 0.0, **consumed}, (1.2, NEVER, NEVER, NEVER), 0.4, NEVER
    exact = {f"f:{name}": 0.0, f"b:{name}": 0.0, "f:__call__": 0.1, "f:forward": 0.2}
    return exact, (0.4, 0.7, 0.1, 1.2), 0.5, NEVER


def _attribute(function: ast.Attribute, index: FileIndex, owner: ClassFacts | None) -> _Costs:
    """A call of an attribute: a method, a submodule, or a function of an imported library."""
    name, base = function.attr, function.value
    dotted = index.dotted(function)
    if dotted and (dotted.partition(".")[0] != _head(function) or _head(function) in index.imports):
        return _imported(name, dotted)
    if _is_self(base) and owner is not None:
        if method := owner.methods.get(name):
            return _function(name, [method], index)
        if kind := owner.attributes.get(name):
            exact = {f"m:{kind}": 0.0, f"f:{kind}": 0.1, f"f:{name}": 0.0, "f:__call__": 0.2, "f:forward": 0.3}
            return exact, (0.9, 1.5, 0.5, 1.5), 0.6, NEVER
        return {f"f:{name}": 0.0, f"b:{name}": 0.0, "f:__call__": 0.3}, (0.7, 1.2, 0.2, 1.5), 0.6, NEVER
    exact = {**_WRAPPERS, f"b:{name}": 0.0, f"f:{name}": 0.0, f"o:{name}": 0.2, "f:__call__": 0.6}
    if name[:1].isupper():
        exact |= _CONSTRUCTOR
    return exact, (0.9, 1.5, 0.6, 1.5), 0.7, NEVER


def _function(name: str, functions: Iterable[Function], index: FileIndex) -> _Costs:
    """A function or method defined in this file."""
    nodes = [f.node for f in functions if isinstance(f.node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    decorators = [_decorator_origin(one, index) for node in nodes for one in node.decorator_list]
    is_decorated = bool(decorators)
    # Calling a generator function or a coroutine runs nothing yet: the frame shows where it is consumed.
    is_lazy = any(isinstance(node, ast.AsyncFunctionDef) or _yields(node) for node in nodes)
    skip = 0.0 if is_lazy else 0.3 if is_decorated else 1.0
    exact = {f"f:{name}": 0.0}
    if is_decorated:
        # torch's own (`no_grad`, `inference_mode`) all wrap in one function; any other name is another decorator's.
        is_torch = all(origin.startswith("torch.") for origin in decorators)
        others = dict.fromkeys(_WRAPPERS, 0.8 if is_torch else 0.35)
        exact |= {**others, "f:decorate_context": 0.0 if is_torch else 0.8}
    return exact, (0.45 if is_decorated else 1.5, 1.0 if is_decorated else NEVER, 1.0, NEVER), skip, NEVER


def _decorator_origin(decorator: ast.expr, index: FileIndex) -> str:
    return index.dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)


def _imported(name: str, origin: str) -> _Costs:
    """A function or class of another module; `origin` is its dotted name there."""
    library, _, _ = origin.partition(".")
    original = origin.rpartition(".")[2]
    names = {name, original}
    exact = {f"f:{n}": 0.0 for n in names} | {f"b:{n}": 0.0 for n in names} | {f"o:{n}": 0.2 for n in names}
    exact[f"f:_{original}_dispatcher"] = 0.0
    if library in _NUMERIC_LIBRARIES:
        return exact, (1.0, 1.2, NEVER, NEVER), 0.05, 0.05
    if original[:1].isupper():
        return {**exact, **_CONSTRUCTOR}, (1.0, 1.5, 0.9, 0.8), 0.2, 0.05
    exact = {**_WRAPPERS, **_MAYBE_CONSTRUCTOR, **exact, "f:__call__": 0.4}
    return exact, (0.75, 1.2, 0.9, 1.2), 0.7, 0.1


def _callee_name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _head(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_self(node: ast.expr) -> bool:
    """`self`, `cls` or `super()`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _yields(function: ast.AST) -> bool:
    """Whether the function itself, not one nested in it, yields."""
    pending = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(node))
    return False
