"""What expressions give."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .heap import Raised
from .objects import get_attribute, get_item
from .signatures import Arguments
from .tensors import elementwise, matmul
from .values import (
    MORE,
    BoundMethod,
    ClassValue,
    FileValue,
    Frame,
    FunctionValue,
    LibraryValue,
    ModuleValue,
    Names,
    NativeMethod,
    ObjectValue,
    PartialValue,
    TensorValue,
    Unknown,
    Value,
    is_same,
    join,
)

if TYPE_CHECKING:
    from .machine import Machine

MOST_ITEMS = 10_000
"""Longer sequences count as not known."""
_MOST_BITS = 256
_FAULTS = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError, MemoryError)
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


def evaluate(machine: Machine, node: ast.expr, frame: Frame) -> Value:
    """The value of an expression."""
    machine.budget.step()
    find = _EVALUATE.get(type(node))
    return find(machine, node, frame) if find is not None else Unknown("an expression that is not followed")


def truth(value: Value) -> bool | None:
    """Whether a value counts as true; None if that is not known."""
    if isinstance(value, (Unknown, TensorValue)):
        known = (
            {truth(one) for one in value.alternatives} if isinstance(value, Unknown) and value.alternatives else {None}
        )
        return known.pop() if len(known) == 1 else None
    if isinstance(value, LibraryValue):
        # A class or dtype is true; a flag (`HAS_TRITON`) may be either.
        return True if value.name[:1].isupper() and not value.name.isupper() else None
    if isinstance(value, ModuleValue):
        is_container = value.dotted in ("torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ModuleDict")
        return len(value.items()) > 0 if is_container else True
    if isinstance(value, list) and value and value[0] is MORE:
        return None
    return bool(value) if value is None or isinstance(value, (*_PLAIN, *_OBJECTS)) else None


def items_of(machine: Machine, value: Value) -> list[Value] | None:
    """The items that a loop over a value goes through; None if they are not known."""
    if isinstance(value, ModuleValue):
        if value.dotted == "torch.nn.ModuleDict":
            return list(value.attributes)
        return value.items() if value.dotted in ("torch.nn.Sequential", "torch.nn.ModuleList") else None
    if isinstance(value, dict):
        return list(value)
    if isinstance(value, (list, tuple, str, range)):
        if len(value) > MOST_ITEMS:
            return None
        machine.budget.step(len(value) // 8)
        return list(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, TensorValue) and value.data is not None:
        return [TensorValue((), value.dtype, data=(item,)) for item in value.data]
    if isinstance(value, TensorValue) and value.shape and type(value.shape[0]) is int and value.shape[0] <= 4096:
        rest = value.shape[1:]
        return [TensorValue(rest, value.dtype, sources=value.sources) for _ in range(value.shape[0])]
    if isinstance(value, ClassValue) and any(
        getattr(base, "dotted", "").startswith("enum.") for base in value.mro or ()
    ):
        return [one for one in (value.attributes or {}).values() if isinstance(one, ObjectValue)]
    return None


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
    except _FAULTS:
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
    except _FAULTS:
        return Unknown("cannot be compared")


def _is_flag(value: Value) -> bool:
    """Whether a library's value may be a plain number or string: no class, function or dtype."""
    return isinstance(value, LibraryValue) and not value.dotted.startswith(("torch.", "builtins."))


def _identity(left: Value, right: Value) -> Value:
    for value, other in ((left, right), (right, left)):
        if isinstance(value, Unknown):
            if (
                value.alternatives
                and other is None
                and all(one is not None and not isinstance(one, Unknown) for one in value.alternatives)
                and len(value.alternatives) > 1
            ):
                return False
            return Unknown("compared with a value that is not known")
    return left is right or is_same(left, right)


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
    except _FAULTS:
        return Unknown("cannot be compared")
    is_open = not isinstance(container, str | range) and any(isinstance(one, Unknown) for one in container)
    return Unknown("there may be further items") if is_open and not found else found


def _constant(_machine: Machine, node: ast.Constant, _frame: Frame) -> Value:
    return node.value


def _name(machine: Machine, node: ast.Name, frame: Frame) -> Value:
    return machine.lookup(node.id, frame)


def _attribute(machine: Machine, node: ast.Attribute, frame: Frame) -> Value:
    return get_attribute(machine, machine.evaluate(node.value, frame), node.attr, node, frame)


def _subscript(machine: Machine, node: ast.Subscript, frame: Frame) -> Value:
    held = machine.evaluate(node.value, frame)
    return get_item(machine, held, machine.evaluate(node.slice, frame))


def _slice(machine: Machine, node: ast.Slice, frame: Frame) -> Value:
    parts = [None if part is None else machine.evaluate(part, frame) for part in (node.lower, node.upper, node.step)]
    return Unknown("a slice that is not known") if any(isinstance(p, Unknown) for p in parts) else slice(*parts)


def arguments(machine: Machine, node: ast.Call, frame: Frame) -> Arguments:
    """What a call gives to what it calls."""
    given = Arguments(_items(machine, node.args, frame))
    for keyword in node.keywords:
        value = machine.evaluate(keyword.value, frame)
        if keyword.arg is not None:
            given.kwargs[keyword.arg] = value
        elif isinstance(value, dict):
            given.kwargs.update({key: item for key, item in value.items() if isinstance(key, str)})
            given.is_open |= MORE in value
        else:
            given.is_open = True
    return given


def _call(machine: Machine, node: ast.Call, frame: Frame) -> Value:
    callee = machine.evaluate(node.func, frame)
    return machine.call(callee, arguments(machine, node, frame), node, frame)


def _items(machine: Machine, nodes: Sequence[ast.expr], frame: Frame) -> list[Value]:
    """Values of the items of a display or call, starred ones taken apart; nothing is known behind a `MORE`."""
    found: list[Value] = []
    for node in nodes:
        if not isinstance(node, ast.Starred):
            found.append(machine.evaluate(node, frame))
            continue
        items = items_of(machine, machine.evaluate(node.value, frame))
        found.extend([MORE] if items is None else items)
    machine.budget.step(len(found) // 8)
    return found


def _dict(machine: Machine, node: ast.Dict, frame: Frame) -> Value:
    found: dict[Value, Value] = {}
    for key, item in zip(node.keys, node.values, strict=True):
        value = machine.evaluate(item, frame)
        if key is None:
            found.update(value if isinstance(value, dict) else {MORE: MORE})
            continue
        name = machine.evaluate(key, frame)
        try:
            found[MORE if isinstance(name, Unknown) else name] = value
        except TypeError:
            return Unknown("a key that cannot be one")
    return found


def _set(machine: Machine, node: ast.Set, frame: Frame) -> Value:
    try:
        return set(_items(machine, node.elts, frame))
    except TypeError:
        return Unknown("an item that cannot be one of a set")


def _both(machine: Machine, node: ast.BoolOp, frame: Frame) -> Value:
    """`and`, `or`: the first operand that decides. One that decides behind an unknown one counts: true or false the
    whole is, either way."""
    decides = isinstance(node.op, ast.Or)
    possible: list[Value] = []
    value: Value = None
    for operand in node.values:
        value = machine.evaluate(operand, frame)
        known = truth(value)
        if known is decides:
            return join([*possible, value]) if possible and not isinstance(value, bool) else value
        if known is None:
            possible.append(value)
    return join([*possible, value]) if possible else value


def _not(machine: Machine, node: ast.UnaryOp, frame: Frame) -> Value:
    value = machine.evaluate(node.operand, frame)
    if isinstance(node.op, ast.Not):
        known = truth(value)
        return Unknown("not known") if known is None else not known
    if isinstance(value, TensorValue):
        return elementwise(value, 1)
    if not isinstance(value, (int, float, complex)):
        return Unknown("computed from a value that is not known")
    try:
        return -value if isinstance(node.op, ast.USub) else +value if isinstance(node.op, ast.UAdd) else ~value  # pyright: ignore[reportOperatorIssue]
    except _FAULTS:
        return Unknown("cannot be computed")


def _compared(machine: Machine, node: ast.Compare, frame: Frame) -> Value:
    left = machine.evaluate(node.left, frame)
    result: Value = True
    for op, other in zip(node.ops, node.comparators, strict=True):
        right = machine.evaluate(other, frame)
        found = compare(op, left, right)
        if found is False:
            return False
        if isinstance(found, Unknown):
            result = found
        left = right
    return result


def _choice(machine: Machine, node: ast.IfExp, frame: Frame) -> Value:
    known = truth(machine.evaluate(node.test, frame))
    if known is not None:
        return machine.evaluate(node.body if known else node.orelse, frame)
    found: list[Value] = []
    for branch in (node.body, node.orelse):
        try:
            found.append(machine.evaluate(branch, frame))
        except Raised:
            continue
    return join(found) if found else Unknown("neither branch can be computed")


def _lambda(machine: Machine, node: ast.Lambda, frame: Frame) -> Value:
    from .statements import function_value

    return function_value(machine, node, frame)


def _text(machine: Machine, node: ast.JoinedStr, frame: Frame) -> Value:
    parts: list[str] = []
    for piece in node.values:
        value = piece.value if isinstance(piece, ast.Constant) else machine.evaluate(piece, frame)
        if not isinstance(value, str):
            return Unknown("a text that is not known")
        parts.append(value)
    text = "".join(parts)
    return text if len(text) <= MOST_ITEMS else Unknown("too large")


def _formatted(machine: Machine, node: ast.FormattedValue, frame: Frame) -> Value:
    value = machine.evaluate(node.value, frame)
    form = machine.evaluate(node.format_spec, frame) if node.format_spec is not None else ""
    if not isinstance(value, (int, float, str, bool, type(None))) or not isinstance(form, str) or len(form) > 4:
        return Unknown("a text that is not known")
    try:
        return format(str(value) if node.conversion == 115 else repr(value) if node.conversion == 114 else value, form)
    except _FAULTS:
        return Unknown("cannot be computed")


def _walrus(machine: Machine, node: ast.NamedExpr, frame: Frame) -> Value:
    from .statements import bind_name

    value = machine.evaluate(node.value, frame)
    bind_name(machine, node.target.id, value, frame)
    return value


def _comprehension(machine: Machine, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, frame: Frame) -> Value:
    inner = Frame(frame.path, Names(), frame, frame.function, frame.owner)
    found: list[Value] = []
    for certain in _passes(machine, node.generators, inner):
        value = machine.evaluate(node.elt, inner)
        found.append(value)
        if not certain:
            found.append(MORE)
            break
    if isinstance(node, ast.SetComp):
        try:
            return set(found)
        except TypeError:
            return Unknown("an item that cannot be one of a set")
    return found


def _dict_comprehension(machine: Machine, node: ast.DictComp, frame: Frame) -> Value:
    inner = Frame(frame.path, Names(), frame, frame.function, frame.owner)
    found: dict[Value, Value] = {}
    for certain in _passes(machine, node.generators, inner):
        key, value = machine.evaluate(node.key, inner), machine.evaluate(node.value, inner)
        try:
            found[MORE if isinstance(key, Unknown) else key] = value
        except TypeError:
            return Unknown("a key that cannot be one")
        if not certain:
            found[MORE] = MORE
            break
    return found


def _passes(machine: Machine, generators: Sequence[ast.comprehension], frame: Frame) -> Iterator[bool]:
    """One pass for each item, its names bound; whether it is certain that there is one, and that more are known."""
    from .statements import assign

    generator, *rest = generators
    items = items_of(machine, machine.evaluate(generator.iter, frame))
    for item in [MORE] if items is None else items:
        machine.budget.step()
        value = Unknown("an item of a sequence that is not known") if item is MORE else item
        assign(machine, generator.target, value, frame)
        tests = [truth(machine.evaluate(test, frame)) for test in generator.ifs]
        if False in tests:
            continue
        is_certain = item is not MORE and None not in tests
        for certain in _passes(machine, rest, frame) if rest else (True,):
            yield certain and is_certain
        if item is MORE:
            return


def _unpacked(machine: Machine, node: ast.Starred, frame: Frame) -> Value:
    return machine.evaluate(node.value, frame)


_EVALUATE: Mapping[type[ast.expr], Callable[..., Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.Call: _call,
    ast.List: lambda machine, node, frame: _items(machine, node.elts, frame),
    ast.Tuple: lambda machine, node, frame: tuple(_items(machine, node.elts, frame)),
    ast.Set: _set,
    ast.Dict: _dict,
    ast.BinOp: lambda machine, node, frame: binary(
        machine, node.op, machine.evaluate(node.left, frame), machine.evaluate(node.right, frame)
    ),
    ast.BoolOp: _both,
    ast.UnaryOp: _not,
    ast.Compare: _compared,
    ast.IfExp: _choice,
    ast.Lambda: _lambda,
    ast.JoinedStr: _text,
    ast.FormattedValue: _formatted,
    ast.NamedExpr: _walrus,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _dict_comprehension,
    ast.Starred: _unpacked,
    ast.Await: lambda machine, node, frame: machine.evaluate(node.value, frame),
}
