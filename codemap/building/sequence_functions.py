"""Python's own functions on sequences."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .objects import get_attribute
from .operators import items_of, set_of, truth
from .signatures import Arguments
from .values import (
    MORE,
    BoundMethod,
    Frame,
    LibraryValue,
    ModuleValue,
    ObjectValue,
    TensorValue,
    Unknown,
    Value,
    is_known,
)

if TYPE_CHECKING:
    from .machine import Machine


def _len(machine: Machine, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    of = given.get(0, "obj")
    if isinstance(of, ModuleValue):
        return Unknown("a length that is not known") if of.has_more else len(of.items())
    if isinstance(of, TensorValue):
        return of.shape[0] if of.shape else Unknown("a length that is not known")
    if isinstance(of, ObjectValue) and of.cls is not None:
        method = get_attribute(machine, of, "__len__", node, frame)
        return (
            machine.call(method, Arguments(), node, frame) if isinstance(method, BoundMethod) else Unknown("a length")
        )
    if isinstance(of, (list, tuple, dict, set)) and MORE in of:
        return Unknown("a length that is not known")
    return len(of) if isinstance(of, (list, tuple, dict, set, frozenset, str, bytes, range)) else Unknown("a length")


def _sequence(machine: Machine, given: Arguments) -> list[Value] | None:
    return items_of(machine, given.args[0]) if given.args else []


def _list(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    items = _sequence(machine, given)
    return [MORE] if items is None else items


def _tuple(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    items = _sequence(machine, given)
    return Unknown("a tuple of unknown length") if items is None else tuple(items)


def _set(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    items = _sequence(machine, given)
    return Unknown("a set that is not known") if items is None else set_of(items)


def make_dict(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    """`dict(...)`, `OrderedDict(...)`."""
    found: dict[Value, Value] = {}
    if given.args:
        first = given.args[0]
        if isinstance(first, ObjectValue):
            first = dict(first.attributes)
        if isinstance(first, dict):
            found.update(first)
        else:
            for pair in _sequence(machine, given) or [MORE]:
                if isinstance(pair, (tuple, list)) and len(pair) == 2 and isinstance(pair[0], (str, int, LibraryValue)):
                    found[pair[0]] = pair[1]
                else:
                    found[MORE] = MORE
    found.update(given.kwargs)
    if given.is_open:
        found[MORE] = MORE
    return found


def _zip(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    """Sequences of which one is not known are taken to be as long as the others."""
    columns = [items_of(machine, one) for one in given.args]
    known = [column for column in columns if column is not None and MORE not in column]
    if not known:
        return [MORE] if columns else []
    count = min(len(column) for column in known)
    filled = [
        column if column is not None and MORE not in column else [Unknown("an item")] * count for column in columns
    ]
    return [tuple(row) for row in zip(*filled, strict=False)]


def _enumerate(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    items, start = _sequence(machine, given), given.get(1, "start", 0)
    if items is None:
        return Unknown("items of a sequence that is not known")
    first = start if type(start) is int else 0
    return [MORE if item is MORE else (first + at, item) for at, item in enumerate(items)]


def _reversed(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    items = _sequence(machine, given)
    return Unknown("a sequence of unknown length") if items is None or MORE in items else items[::-1]


def _sorted(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    items = _sequence(machine, given)
    if items is None or not is_known(items) or "key" in given.kwargs:
        return Unknown("a sorted sequence that is not known")
    try:
        return sorted(items, reverse=bool(given.kwargs.get("reverse", False)))  # pyright: ignore[reportCallIssue, reportArgumentType]
    except TypeError:
        return Unknown("cannot be sorted")


def _any(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    return _quantified(machine, given, decides=True)


def _all(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    return _quantified(machine, given, decides=False)


def _quantified(machine: Machine, given: Arguments, *, decides: bool) -> Value:
    items = _sequence(machine, given)
    found = [None] if items is None else [truth(item) for item in items]
    return decides if decides in found else Unknown("not known") if None in found else not decides


def _map(machine: Machine, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    rows = _zip(machine, Arguments(given.args[1:]), node, frame)
    assert isinstance(rows, list)
    found: list[Value] = []
    for row in rows:
        machine.budget.step()
        given_to: list[Value] = [Unknown("an item")] if row is MORE else list(row)
        found.append(machine.call(given.args[0], Arguments(given_to), node, frame))
        if row is MORE:
            found.append(MORE)
    return found


def _filter(machine: Machine, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    items = items_of(machine, given.get(1, "iterable"))
    if items is None:
        return [MORE]
    found: list[Value] = []
    for item in items:
        kept = truth(item if given.args[0] is None else machine.call(given.args[0], Arguments([item]), node, frame))
        if kept is not False:
            found.extend([item] if kept else [item, MORE])
    return found


def _iter(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    items = _sequence(machine, given)
    return Unknown("an iterator") if items is None else items


def _next(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    items = _sequence(machine, given)
    if not isinstance(given.get(0, "iterator"), list) or not items:
        return given.args[1] if len(given.args) > 1 and items == [] else Unknown("the next item")
    held = given.args[0]
    assert isinstance(held, list)
    machine.heap.write(held)
    return held.pop(0) if held[0] is not MORE else Unknown("the next item")


SEQUENCE_FUNCTIONS: Mapping[str, Callable[[Machine, Arguments, ast.AST, Frame], Value]] = {
    "len": _len,
    "list": _list,
    "tuple": _tuple,
    "set": _set,
    "frozenset": _set,
    "dict": make_dict,
    "zip": _zip,
    "enumerate": _enumerate,
    "reversed": _reversed,
    "sorted": _sorted,
    "any": _any,
    "all": _all,
    "map": _map,
    "filter": _filter,
    "iter": _iter,
    "next": _next,
}
"""By name."""
