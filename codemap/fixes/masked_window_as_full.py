"""A mask of windows over full attention: found where the mask is made. Advice only."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator

from ...analyzer.findings import Related
from .attention_parts import given
from .base import Case, Confirmation, Fixer
from .outline import Outline, find, last_name
from .resolve import Resolver, Value
from .scene import Scene, scene, searcher

_SLUG = "masked-window-as-full"
_FUSED = "scaled_dot_product_attention"
_MESSAGE = "the mask leaves each token a window: fold the windows into the batch, or use flex_attention's block masks"
_MOST_VALUES = 60
_DIVIDING = ("floor_divide", "repeat_interleave")
"""Calls that give neighbours the same number."""
_SIZED = ("arange", "range", "zeros", "ones", "full", "randint", "view", "reshape", "expand", "repeat", "unflatten")
"""Calls whose arguments are sizes."""


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    file = view.here.outline
    for function in dict.fromkeys(file.function(statement) for statement in view.here.statements):
        for mask, user in _masks(file, function):
            if (band := _band(view.resolver, Value(file, mask))) is not None:
                return _confirmation(view, user, band)
    return None


def _confirmation(view: Scene, user: ast.expr, band: Value) -> Confirmation:
    file = view.here.outline
    place = file.location(file.statement(user), view.case.location)
    made = band.outline.location(band.outline.statement(band.node), view.case.location)
    return Confirmation(place, (), (Related("the mask is made here", made),), _MESSAGE)


def _masks(file: Outline, function: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Masks that a function's attentions use, each with the expression that uses it."""
    for call in file.calls_in(function):
        if last_name(call.func) == _FUSED:
            mask = given(call, "attn_mask", 3)
        elif last_name(call.func) in ("masked_fill", "masked_fill_"):
            mask = call.args[0] if call.args else None
        elif last_name(call.func) == "where":
            mask = call.args[0] if len(call.args) == 3 else None
        else:
            mask = next((keyword.value for keyword in call.keywords if keyword.arg in ("attn_mask", "mask")), None)
        if mask is not None and not isinstance(mask, ast.Constant):
            yield mask, call
    for node in find(function, ast.BinOp):
        if isinstance(node.op, ast.Add) and "mask" in last_name(node.right):
            yield node.right, node
    for node in find(function, ast.AugAssign):
        if isinstance(node.op, ast.Add) and "mask" in last_name(node.value):
            yield node.value, node.value


def _band(resolver: Resolver, mask: Value) -> Value | None:
    """The expression, among all that a mask is made of, that keeps tokens of one window."""
    return next((value for value in _made_of(resolver, mask) if _is_band(resolver, value)), None)


def _made_of(resolver: Resolver, mask: Value) -> Iterator[Value]:
    """A mask's expression, and those behind the names and helpers that it is written with, nearest first."""
    queue, seen = deque([mask]), set[ast.AST]()
    while queue and len(seen) < _MOST_VALUES:
        value = queue.popleft()
        if value.node in seen:
            continue
        seen.add(value.node)
        yield value
        for node in ast.walk(value.node):
            if isinstance(node, ast.Name | ast.Attribute):
                queue.extend(_given(value.outline, node))
            elif isinstance(node, ast.Call) and _is_plain(node.func):
                queue.extend(_returned(resolver, Value(value.outline, node.func)))


def _is_plain(func: ast.expr) -> bool:
    """`window_mask` or `self.window_mask`: not the method of some value."""
    return isinstance(func, ast.Name) or (isinstance(func, ast.Attribute) and last_name(func.value) == "self")


def _given(file: Outline, node: ast.Name | ast.Attribute) -> list[Value]:
    """What a name was given in its scope, or an attribute of the module in its class, also as a buffer."""
    if isinstance(node, ast.Name):
        bound = (binding.value for binding in file.lookup(node) if not isinstance(binding.node, ast.arg))
        return [Value(file, value) for value in bound if value is not None]
    owner = file.enclosing_class(node)
    if owner is None or last_name(node.value) != "self":
        return []
    found: list[Value] = []
    for one in ast.walk(owner):
        match one:
            case ast.Assign(targets=[ast.Attribute(attr=attr)], value=value) if attr == node.attr:
                found.append(Value(file, value))
            case ast.Call(func=ast.Attribute(attr="register_buffer")):
                name, held = given(one, "name", 0), given(one, "tensor", 1)
                if isinstance(name, ast.Constant) and name.value == node.attr and held is not None:
                    found.append(Value(file, held))
            case _:
                pass
    return found


def _returned(resolver: Resolver, func: Value) -> Iterator[Value]:
    """What the workspace's own function returns."""
    made = resolver.definition(func)
    if made is not None and not isinstance(made.node, ast.ClassDef):
        for node in find(made.node, ast.Return):
            if node.value is not None:
                yield Value(made.outline, node.value)


def _is_band(resolver: Resolver, value: Value) -> bool:
    return any(_keeps_window(resolver, value.outline, node) for node in ast.walk(value.node))


def _keeps_window(resolver: Resolver, file: Outline, node: ast.AST) -> bool:
    match node:
        case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()], comparators=[right]):
            return any(_is_distance(Value(file, side)) for side in (left, right))
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
            return all(_is_window_number(resolver, Value(file, side)) for side in (left, right))
        case ast.Call():
            name = last_name(node.func)
            names = {last_name(call.func) for call in find(node, ast.Call)}
            return name == "block_diag" or {"tril", "triu"} <= names
        case _:
            return False


def _is_distance(side: Value) -> bool:
    """`(i - j).abs()`, `abs(i - j)`, or a name that holds one."""
    calls = [value.node for value in _with_names(side) if isinstance(value.node, ast.Call)]
    return any(last_name(call.func) in ("abs", "absolute", "cdist") for call in calls)


def _is_window_number(resolver: Resolver, side: Value) -> bool:
    """`position // window`, as a column or a row, what is made of it, or a name or a buffer that holds one."""
    return any(_divides(value.node) for value in _made_of(resolver, side))


def _divides(node: ast.AST) -> bool:
    """Whether neighbours get the same number, other than to say how many numbers there are or how they are laid out."""
    match node:
        case ast.BinOp(op=ast.FloorDiv()):
            return True
        case ast.Call(func=func) if last_name(func) in _DIVIDING:
            return True
        case ast.Call(func=func) if last_name(func) in _SIZED:
            return _divides(func)
        case _:
            return any(_divides(child) for child in ast.iter_child_nodes(node))


def _with_names(side: Value) -> Iterator[Value]:
    """An expression and what the names that it reads were given."""
    yield side
    for node in find(side.node, ast.Name):
        yield from _given(side.outline, node)


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, ("attn_mask", "masked_fill", "mask=")), required=True)
