"""What expressions give."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .assignments import assign, bind_name
from .definitions import function_value
from .heap import Raised
from .objects import get_attribute, get_item
from .operators import FAULTS, MOST_ITEMS, binary, compare, items_of, set_of, truth
from .signatures import Arguments
from .tensors import elementwise
from .values import (
    MORE,
    Frame,
    Names,
    TensorValue,
    Unknown,
    Value,
    join,
)

if TYPE_CHECKING:
    from .machine import Machine


def evaluate(machine: Machine, node: ast.expr, frame: Frame) -> Value:
    """The value of an expression."""
    machine.budget.step()
    find = _EVALUATE.get(type(node))
    return find(machine, node, frame) if find is not None else Unknown("an expression that is not followed")


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
    return set_of(_items(machine, node.elts, frame))


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
    except FAULTS:
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
    except FAULTS:
        return Unknown("cannot be computed")


def _walrus(machine: Machine, node: ast.NamedExpr, frame: Frame) -> Value:
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
    return set_of(found) if isinstance(node, ast.SetComp) else found


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


def _held(machine: Machine, node: ast.Starred | ast.Await, frame: Frame) -> Value:
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
    ast.Lambda: function_value,
    ast.JoinedStr: _text,
    ast.FormattedValue: _formatted,
    ast.NamedExpr: _walrus,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _dict_comprehension,
    ast.Starred: _held,
    ast.Await: _held,
}
