"""Python's own functions on values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .classes import ABSENT
from .module_methods import MODULE_METHODS
from .objects import delete_attribute, get_attribute, set_attribute
from .operators import FAULTS, MOST_ITEMS
from .sequence_functions import SEQUENCE_FUNCTIONS
from .signatures import Arguments
from .type_checks import TYPE_FUNCTIONS
from .values import (
    ClassValue,
    Frame,
    ImportValue,
    LibraryValue,
    ModuleValue,
    NativeMethod,
    ObjectValue,
    SuperValue,
    TensorValue,
    Unknown,
    Value,
    is_known,
)

if TYPE_CHECKING:
    from .machine import Machine

_MOST_TEXT = 2_000
_COMPUTED: Mapping[str, Callable[..., object]] = {
    "abs": abs,
    "round": round,
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "chr": chr,
    "ord": ord,
    "divmod": divmod,
    "min": min,
    "max": max,
    "sum": sum,
    "pow": pow,
    "repr": repr,
    "complex": complex,
    "hash": hash,
    "range": range,
    "slice": slice,
}


def call_builtin(machine: Machine, name: str, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    """What one of Python's own functions gives."""
    make = _FUNCTIONS.get(name)
    if make is not None:
        return make(machine, given, node, frame)
    if name in _COMPUTED:
        return _computed(machine, name, given)
    return Unknown(f"what {name}() gives")


def _computed(machine: Machine, name: str, given: Arguments) -> Value:
    """Functions of plain values that are as cheap as they look."""
    args = [_number(one) for one in given.args]
    if name == "pow" or given.is_open or not all(_is_plain(one) for one in args):
        return Unknown("computed from a value that is not known")
    if name in ("min", "max", "sum") and len(args) == 1:
        machine.budget.step(len(args[0]) if isinstance(args[0], (list, tuple, range)) and len(args[0]) < 10**6 else 1)
        if isinstance(args[0], range) and len(args[0]) > MOST_ITEMS:
            return Unknown("too large")
    if (
        name in ("str", "repr", "int")
        and args
        and isinstance(args[0], (str, list, tuple, dict))
        and len(args[0]) > _MOST_TEXT
    ):
        return Unknown("too large")
    kwargs = {key: value for key, value in given.kwargs.items() if key in ("key", "default", "start", "ndigits")}
    if "key" in kwargs:
        return Unknown("computed by a key")
    try:
        return _COMPUTED[name](*args, **kwargs)
    except FAULTS:
        return Unknown("cannot be computed")


def _number(value: Value) -> Value:
    """The number that a tensor with one element holds, if it is known."""
    if isinstance(value, TensorValue) and value.data is not None and len(value.data) == 1:
        return value.data[0]
    return value


def _is_plain(value: Value) -> bool:
    is_plain = value is None or isinstance(value, (int, float, str, complex, list, tuple, dict, set, range, bytes))
    if isinstance(value, (list, tuple, set)):
        return all(_is_plain(item) for item in value) if len(value) <= MOST_ITEMS else False
    return is_plain and is_known(value)


def _getattr(machine: Machine, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    of, name = given.get(0, "object"), given.get(1, "name")
    if not isinstance(name, str):
        return Unknown("an attribute whose name is not known")
    found = get_attribute(machine, of, name, node, frame)
    is_absent = found is ABSENT or (isinstance(found, NativeMethod) and not _has_method(of, name))
    if len(given.args) > 2 and is_absent:
        return given.args[2]
    return found


def _has_method(of: Value, name: str) -> bool:
    """Whether a value has a method of this name, as far as is known."""
    if isinstance(of, ModuleValue):
        return of.is_opaque or name in MODULE_METHODS
    if isinstance(of, TensorValue):
        return True
    return not isinstance(of, ObjectValue) and hasattr(type(of), name)


def _hasattr(machine: Machine, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    of, name = given.get(0, "obj"), given.get(1, "name")
    if not isinstance(name, str) or isinstance(of, Unknown):
        return Unknown("an attribute whose name is not known")
    if isinstance(of, LibraryValue):
        return True if of.dotted.startswith("torch") else Unknown("an attribute of a library")
    if isinstance(of, ModuleValue) and name not in of.attributes and name not in of.layer_arguments:
        found = get_attribute(machine, of, name, node, frame)
        return _has_method(of, name) if isinstance(found, NativeMethod) else found is not ABSENT
    found = get_attribute(machine, of, name, node, frame)
    return found is not ABSENT and not (isinstance(found, NativeMethod) and not _has_method(of, name))


def _setattr(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    of, name, value = (given.get(at, key) for at, key in enumerate(("obj", "name", "value")))
    if isinstance(name, str):
        set_attribute(machine, of, name, value)
    elif isinstance(of, ModuleValue):
        of.has_more = True
    return None


def _delattr(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    of, name = given.get(0, "obj"), given.get(1, "name")
    if isinstance(name, str):
        delete_attribute(machine, of, name)
    return None


def _super(_machine: Machine, given: Arguments, _node: ast.AST, frame: Frame) -> Value:
    """`super()` and `super(Class, self)`."""
    if len(given.args) == 2 and isinstance(given.args[0], ClassValue):
        return SuperValue(given.args[0], given.args[1])
    current: Frame | None = frame
    while current is not None and (current.owner is None or current.function is None):
        current = current.parent
    if current is None or current.owner is None or current.function is None:
        return Unknown("super() outside a method")
    parameters = current.function.node.args
    names = [one.arg for one in [*parameters.posonlyargs, *parameters.args]]
    return SuperValue(current.owner, current.names.get(names[0])) if names else Unknown("super() without self")


def _vars(_machine: Machine, given: Arguments, _node: ast.AST, frame: Frame) -> Value:
    of = given.get(0, "object", frame)
    if isinstance(of, Frame):
        return of.names
    return of.attributes if isinstance(of, (ModuleValue, ObjectValue)) else Unknown("an object's attributes")


def _globals(machine: Machine, _given: Arguments, _node: ast.AST, frame: Frame) -> Value:
    file = frame.file
    return {
        name: machine.lookup(name, file) if isinstance(value, ImportValue) else value
        for name, value in list(file.names.items())
    }


def _eval(machine: Machine, given: Arguments, _node: ast.AST, frame: Frame) -> Value:
    """`eval("nn.Conv2d")`: a short expression."""
    text = given.get(0, "source")
    if not isinstance(text, str) or len(text) > 200:
        return Unknown("what eval() gives")
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Unknown("what eval() gives")
    return machine.evaluate(tree.body, frame)


def _print(_machine: Machine, _given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    return None


_FUNCTIONS: Mapping[str, Callable[[Machine, Arguments, ast.AST, Frame], Value]] = {
    **SEQUENCE_FUNCTIONS,
    **TYPE_FUNCTIONS,
    "getattr": _getattr,
    "hasattr": _hasattr,
    "setattr": _setattr,
    "delattr": _delattr,
    "super": _super,
    "vars": _vars,
    "locals": _vars,
    "globals": _globals,
    "eval": _eval,
    "print": _print,
}
