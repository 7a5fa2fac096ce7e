"""What a loader's workers run to make a sample: the data set's methods, and what they call in the workspace."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator

from .bindings import FUNCTIONS
from .loaders import dataset_class, loader_argument
from .outline import find
from .resolve import Definition, Resolver, Value

_MAKERS = ("__getitem__", "__getitems__", "__iter__")
_MOST_FUNCTIONS = 40


def calls_behind(resolver: Resolver, loader: Value) -> Iterator[Value]:
    """All calls that making a batch leads to, nearest first."""
    queue = deque(_first_functions(resolver, loader))
    seen: set[ast.AST] = set()
    while queue and len(seen) < _MOST_FUNCTIONS:
        function = queue.popleft()
        if function.node in seen:
            continue
        seen.add(function.node)
        for call in find(function.node, ast.Call):
            value = Value(function.outline, call)
            yield value
            queue.extend(_called(resolver, Value(function.outline, call.func)))


def _first_functions(resolver: Resolver, loader: Value) -> Iterator[Definition]:
    dataset = dataset_class(resolver, loader)
    if dataset is not None:
        for name in _MAKERS:
            if (maker := resolver.method(dataset, name)) is not None:
                yield maker
    for name in ("collate_fn", "worker_init_fn"):
        given = loader_argument(resolver, loader, name).value
        if given is not None:
            yield from _called(resolver, given)


def _called(resolver: Resolver, function: Value) -> Iterator[Definition]:
    """The functions of the workspace that an expression may name: by its name, or by what was assigned to it."""
    own = resolver.definition(function)
    named = [own] if own is not None else _assigned(resolver, function)
    for one in named:
        if isinstance(one.node, FUNCTIONS):
            yield one
        elif (call := resolver.method(one, "__call__") or resolver.method(one, "forward")) is not None:
            yield call


def _assigned(resolver: Resolver, function: Value) -> list[Definition]:
    """Functions, and classes of objects, that came into an attribute or a name by assignment or as an argument."""
    ends = resolver.find(function, lambda one: one.node is not function.node and _names(resolver, one) is not None)
    return [made for one in ends if (made := _names(resolver, one)) is not None]


def _names(resolver: Resolver, value: Value) -> Definition | None:
    node = value.node.func if isinstance(value.node, ast.Call) else value.node
    return resolver.definition(Value(value.outline, node)) if isinstance(node, ast.Name | ast.Attribute) else None
