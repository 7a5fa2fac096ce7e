"""Linear projections of one input in one function: which layers are called on it, and where they are made."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from .attention_parts import find_module
from .outline import Outline, find, last_name

LINEAR = ("Linear",)
_ROLES = (
    re.compile(r"(?<![a-z])(w|to|in|linear)?_?(q|qs|query|queries)(?![a-z])"),
    re.compile(r"(?<![a-z])(w|to|in|linear)?_?(k|ks|key|keys)(?![a-z])"),
    re.compile(r"(?<![a-z])(w|to|in|linear)?_?(v|vs|value|values)(?![a-z])"),
)


@dataclass(frozen=True, slots=True)
class Projection:
    """`self.<name>(<input>)`, a call of a linear layer."""

    call: ast.Call
    name: str
    made: ast.Call | None
    """`nn.Linear(...)`; None where the layer is not made by one in the same class."""

    @property
    def input(self) -> ast.expr:
        """What is projected."""
        return self.call.args[0]


def projections(file: Outline, function: ast.AST) -> list[Projection]:
    """Calls of linear layers with nothing but a name as input, in the order of the text.

    A layer that is made elsewhere counts where its name says that it makes queries, keys or values.
    """
    found: list[Projection] = []
    for call in file.calls_in(function):
        func = call.func
        is_own = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"
        if not is_own or len(call.args) != 1 or call.keywords or not isinstance(call.args[0], ast.Name | ast.Attribute):
            continue
        made = find_module(file, func, LINEAR)
        if made is not None or role(last_name(func)) is not None or "qkv" in last_name(func).lower():
            found.append(Projection(call, last_name(func), made))
    return found


def role(name: str) -> int | None:
    """0, 1, 2 for a name that speaks of queries, keys, values; None for any other."""
    return next((number for number, pattern in enumerate(_ROLES) if pattern.search(name.lower())), None)


def by_input(file: Outline, calls: list[Projection]) -> Iterator[list[Projection]]:
    """Calls on one value in one block of statements: a name counts as another value once it is given another one."""

    def key(one: Projection) -> tuple[str, int, int]:
        statement = file.statement(one.call)
        return ast.dump(one.input), id(file.block(statement)), _last_change(file, one)

    ordered = sorted(calls, key=lambda one: (key(one), one.call.lineno, one.call.col_offset))
    for _, group in groupby(ordered, key):
        yield list(group)


def _last_change(file: Outline, one: Projection) -> int:
    """Line of the last statement before the call that gives the input another value, in the function's text."""
    root = one.input
    while isinstance(root, ast.Attribute):
        root = root.value
    names = {last_name(one.input), last_name(root)} - {"self"}
    changed = [
        node.lineno
        for node in find(file.function(one.call), ast.expr)
        if isinstance(getattr(node, "ctx", None), ast.Store)
        and last_name(node) in names
        and node.lineno < one.call.lineno
    ]
    written = [
        call.lineno
        for call in file.calls_in(file.function(one.call))
        if isinstance(call.func, ast.Attribute)
        and call.func.attr.endswith("_")
        and not call.func.attr.endswith("__")
        and last_name(call.func.value) in names
        and call.lineno < one.call.lineno
    ]
    return max([*changed, *written], default=0)
