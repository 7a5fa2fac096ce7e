"""Functions and classes as their definitions make them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..expressions import last_name
from .assignments import bind_name
from .heap import Raised
from .signatures import Arguments, defaults_of
from .values import (
    ClassValue,
    Frame,
    FunctionValue,
    LibraryValue,
    Role,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from .machine import Machine


def define_function(machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> None:
    """Bind a function."""
    made = function_value(machine, node, frame)
    bind_name(machine, node.name, _decorated(machine, node, made, frame), frame)


def function_value(
    machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, frame: Frame
) -> FunctionValue:
    """A function as its definition makes it, without its decorators."""
    defaults = {name: machine.evaluate(default, frame) for name, default in defaults_of(node.args)}
    # Names of a class body are not seen in its methods.
    scope = frame.parent if frame.owner is not None and frame.function is None and frame.parent else frame
    return FunctionValue(frame.path, node, scope, defaults, frame.owner)


_ROLES = {
    "staticmethod": Role.STATIC,
    "classmethod": Role.CLASS,
    "property": Role.PROPERTY,
    "cached_property": Role.PROPERTY,
    "lazy_property": Role.PROPERTY,
}


def _decorated(
    machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef, made: FunctionValue, frame: Frame
) -> Value:
    """The function behind its decorators. One of a library, or whose result is not known, changes nothing."""
    value: Value = made
    for decorator in reversed(node.decorator_list):
        name = "" if isinstance(decorator, ast.Call) else last_name(decorator)
        if name in _ROLES:
            made.role = _ROLES[name]
        elif name == "setter":
            return frame.names.get(node.name, made)
        else:
            value = _through(machine, decorator, value, frame)
    return value


def _through(machine: Machine, decorator: ast.expr, value: Value, frame: Frame) -> Value:
    function = machine.evaluate(decorator, frame)
    if isinstance(function, (LibraryValue, Unknown)):
        return value
    try:
        result = machine.call(function, Arguments([value]), decorator, frame)
    except Raised:
        return value
    return value if isinstance(result, Unknown) or result is None else result


def define_class(machine: Machine, node: ast.ClassDef, frame: Frame) -> None:
    """Bind a class."""
    value: Value = ClassValue(node.name, frame.path, node, frame)
    for decorator in reversed(node.decorator_list):
        if last_name(decorator) in ("dataclass", "define", "frozen", "s", "attrs") and isinstance(value, ClassValue):
            value.is_data = True
        else:
            value = _through(machine, decorator, value, frame)
    bind_name(machine, node.name, value, frame)
