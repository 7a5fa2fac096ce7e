"""What operators give, and what a value counts as: true or false, its items."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .classes import is_enumeration, members
from .layers import CONTAINERS
from .tensors import MOST_NUMBERS, elementwise, matmul
from .values import (
    MORE,
    BoundMethod,
    ClassValue,
    FileValue,
    FunctionValue,
    LibraryValue,
    ModuleValue,
    NativeMethod,
    ObjectValue,
    PartialValue,
    TensorValue,
    Unknown,
    Value,
    is_same,
)

if TYPE_CHECKING:
    from .machine import Machine


MOST_ITEMS = 10_000
"""Longer sequences count as not known."""


_MOST_BITS = 256


FAULTS = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError, MemoryError)
"""What computing with plain values may raise."""


_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}


_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


_PLAIN = (int, float, str, bytes, complex, list, tuple, dict, set, frozenset, range)


_OBJECTS = (ModuleValue, ClassValue, FunctionValue, BoundMethod, NativeMethod, PartialValue, FileValue, ObjectValue)


def truth(value: Value) -> bool | None:
    """Whether a value counts as true; None if that is not known."""
    if isinstance(value, TensorValue):
        return None
    if isinstance(value, Unknown):
        known = {truth(one) for one in value.alternatives}
        return known.pop() if len(known) == 1 else None
    if isinstance(value, LibraryValue):
        # A class or dtype is true; a flag (`HAS_TRITON`) may be either.
        return True if value.name[:1].isupper() and not value.name.isupper() else None
    if isinstance(value, ModuleValue):
        return len(value.items()) > 0 if value.dotted in CONTAINERS else True
    if isinstance(value, list) and value and value[0] is MORE:
        return None
    return bool(value) if value is None or isinstance(value, (*_PLAIN, *_OBJECTS)) else None


def items_of(machine: Machine, value: Value) -> list[Value] | None:
    """The items that a loop over a value goes through; None if they are not known."""
    if isinstance(value, ModuleValue):
        if value.dotted == "torch.nn.ModuleDict":
            return list(value.attributes)
        return value.items() if value.dotted in CONTAINERS else None
    if isinstance(value, dict):
        return list(value)
    if isinstance(value, (list, tuple, str, range)):
        if len(value) > MOST_ITEMS:
            return None
        machine.budget.step(len(value) // 8)
        return list(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, TensorValue):
        if value.data is not None:
            return [TensorValue((), value.dtype, data=(item,)) for item in value.data]
        if not value.shape or type(value.shape[0]) is not int or value.shape[0] > MOST_NUMBERS:
            return None
        return [TensorValue(value.shape[1:], value.dtype, sources=value.sources) for _ in range(value.shape[0])]
    if isinstance(value, ClassValue) and is_enumeration(machine, value):
        return list(members(machine, value).values())
    return None


def set_of(items: list[Value]) -> Value:
    """A set of items; `Unknown` if one of them cannot be in one."""
    try:
        return set(items)
    except TypeError:
        return Unknown("an item that cannot be one of a set")


def binary(machine: Machine, op: ast.operator, left: Value, right: Value) -> Value:
    """`left op right`."""
    if isinstance(left, TensorValue) or isinstance(right, TensorValue):
        return matmul(left, right) if isinstance(op, ast.MatMult) else elementwise(left, right)
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return Unknown("computed from a value that is not known")
    if isinstance(left, LibraryValue) or isinstance(right, LibraryValue):
        return Unknown("computed from a library's value")
    if not _is_small(op, left, right):
        return Unknown("too large")
    if isinstance(left, (list, tuple)) or isinstance(right, (list, tuple)):
        machine.budget.step(_length(left) + _length(right))
    apply = _OPERATORS.get(type(op))
    if apply is None:
        return Unknown("an operator that is not followed")
    try:
        return apply(left, right)
    except FAULTS:
        return Unknown("cannot be computed")


def _length(value: Value) -> int:
    return len(value) if isinstance(value, (list, tuple, str, bytes)) else 0


def _is_small(op: ast.operator, left: Value, right: Value) -> bool:
    """Whether a result is of a size that is worth having."""
    match op:
        case ast.Pow() if isinstance(left, int) and isinstance(right, int):
            return left.bit_length() * max(right, 0) <= _MOST_BITS
        case ast.LShift() if isinstance(left, int) and isinstance(right, int):
            return left.bit_length() + max(right, 0) <= _MOST_BITS
        case ast.Mult():
            if isinstance(left, int) and isinstance(right, int):
                return left.bit_length() + right.bit_length() <= 2 * _MOST_BITS
            times = left if isinstance(left, int) else right if isinstance(right, int) else 1
            return (_length(left) + _length(right)) * max(times, 0) <= MOST_ITEMS
        case ast.Mod() if isinstance(left, (str, bytes)):
            return len(left) < 200 and not any(part[:3].isdigit() for part in str(left).split("%"))
        case _:
            return _length(left) + _length(right) <= MOST_ITEMS


def compare(op: ast.cmpop, left: Value, right: Value) -> Value:
    """`left op right`; `Unknown` where it cannot be told."""
    match op:
        case ast.Is():
            return _identity(left, right)
        case ast.IsNot():
            same = _identity(left, right)
            return same if isinstance(same, Unknown) else not same
        case ast.In():
            return _contains(right, left)
        case ast.NotIn():
            found = _contains(right, left)
            return found if isinstance(found, Unknown) else not found
    for value in (left, right):
        if isinstance(value, (Unknown, TensorValue)):
            return Unknown("compared with a value that is not known")
        if isinstance(value, (list, tuple)) and any(isinstance(item, Unknown) for item in value):
            return Unknown("compared with a value that is not known")
    if isinstance(left, (*_OBJECTS, LibraryValue)) or isinstance(right, (*_OBJECTS, LibraryValue)):
        if isinstance(op, ast.Eq | ast.NotEq) and not _is_flag(left) and not _is_flag(right):
            return is_same(left, right) is isinstance(op, ast.Eq)
        return Unknown("compared with an object")
    try:
        return bool(_COMPARISONS[type(op)](left, right))
    except FAULTS:
        return Unknown("cannot be compared")


def _is_flag(value: Value) -> bool:
    """Whether a library's value may be a plain number or string: no class, function or dtype."""
    return isinstance(value, LibraryValue) and not value.dotted.startswith(("torch.", "builtins."))


def _identity(left: Value, right: Value) -> Value:
    for value, other in ((left, right), (right, left)):
        if isinstance(value, Unknown):
            is_something = all(one is not None and not isinstance(one, Unknown) for one in value.alternatives)
            if other is None and is_something and len(value.alternatives) > 1:
                return False
            return Unknown("compared with a value that is not known")
    return is_same(left, right)


def _contains(container: Value, item: Value) -> Value:
    if isinstance(container, ModuleValue) and container.dotted == "torch.nn.ModuleDict":
        return item in container.attributes
    if isinstance(container, ObjectValue):
        return item in container.attributes if isinstance(item, str) else Unknown("an object's items")
    if not isinstance(container, (list, tuple, dict, set, frozenset, str, range)) or isinstance(item, Unknown):
        return Unknown("looked for in a value that is not known")
    try:
        if isinstance(container, (list, tuple)):
            found = any(is_same(item, one) or (isinstance(one, (int, float)) and one == item) for one in container)
        else:
            found = item in container  # pyright: ignore[reportOperatorIssue]
    except FAULTS:
        return Unknown("cannot be compared")
    is_open = not isinstance(container, str | range) and any(isinstance(one, Unknown) for one in container)
    return Unknown("there may be further items") if is_open and not found else found
