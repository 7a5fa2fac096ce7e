"""Convolutions followed by a batch norm, as classes and `nn.Sequential`s write them."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from .bindings import FUNCTIONS
from .layers import CONVOLUTIONS, NORMS, is_layer, layers_behind
from .outline import Outline, find, last_name
from .resolve import Definition, Resolver, Value

_MAX_CLASSES = 60


@dataclass(frozen=True, slots=True)
class LayerPair:
    """A convolution and the norm that takes its result."""

    conv: Value
    """The constructor, one of them if there are several."""
    norm: Value
    names: tuple[str, str] = ("", "")
    """The attributes of `self` that hold them; "" for parts of an `nn.Sequential`."""


def module_classes(resolver: Resolver, construction: Value) -> list[Definition]:
    """A model's class and the workspace's classes that it, or a helper of its, makes parts of; base classes too, and
    the classes of blocks that it is given."""
    found: dict[ast.AST, Definition] = {}
    assert isinstance(construction.node, ast.Call)
    named = (construction.node.func, *construction.node.args, *(one.value for one in construction.node.keywords))
    queue = deque(
        made for one in named if _may_name(one) and (made := resolver.definition(Value(construction.outline, one)))
    )
    while queue and len(found) < _MAX_CLASSES:
        current = queue.popleft()
        if current.node in found:
            continue
        found[current.node] = current
        if isinstance(current.node, ast.ClassDef):
            queue.extend(resolver.bases(current))
        for call in find(current.node, ast.Call):
            for named in (call.func, *call.args):
                part = resolver.definition(Value(current.outline, named)) if _may_name(named) else None
                if part is not None:
                    queue.append(part)
    return list(found.values())


def holds_layers(resolver: Resolver, construction: Value, kinds: tuple[str, ...]) -> bool:
    """Whether a model that is constructed there makes layers of these names, itself or in its parts in sight."""
    roots: list[tuple[Outline, ast.AST]] = [(construction.outline, construction.node)]
    roots += [(one.outline, one.node) for one in module_classes(resolver, construction)]
    return any(is_layer(Value(file, call), kinds) for file, root in roots for call in find(root, ast.Call))


def pairs_in(resolver: Resolver, owner: Definition) -> list[LayerPair]:
    """The pairs that a class or function holds: by its `forward`, and in the `nn.Sequential`s that it makes."""
    found: list[LayerPair] = []
    for call in find(owner.node, ast.Call):
        found += sequential_pairs(Value(owner.outline, call))
    if isinstance(owner.node, ast.ClassDef):
        found += list(_attribute_pairs(resolver, owner))
    return found


def sequential_pairs(made: Value) -> list[LayerPair]:
    """The pairs among the arguments of an `nn.Sequential(...)`, or of the `super().__init__(...)` of one's subclass."""
    call = made.node
    if not isinstance(call, ast.Call) or not _makes_sequential(made.outline, call):
        return []
    parts = call.args
    if len(parts) == 1 and isinstance(parts[0], ast.Starred):
        parts = [parts[0].value]
    if len(parts) == 1 and isinstance(parts[0], ast.Call) and last_name(parts[0].func) == "OrderedDict":
        parts = parts[0].args
    if len(parts) == 1 and isinstance(parts[0], ast.List):
        parts = parts[0].elts
    values = [Value(made.outline, _dict_value(part)) for part in parts]
    return [
        LayerPair(conv, norm)
        for conv, norm in pairwise(values)
        if is_layer(conv, CONVOLUTIONS) and is_layer(norm, NORMS)
    ]


def _makes_sequential(file: Outline, call: ast.Call) -> bool:
    if file.dotted(call.func) == "torch.nn.Sequential":
        return True
    match call.func:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__"):
            owner = file.enclosing_class(call)
            return owner is not None and any(file.dotted(base) == "torch.nn.Sequential" for base in owner.bases)
        case _:
            return False


def _attribute_pairs(resolver: Resolver, owner: Definition) -> Iterator[LayerPair]:
    """`self.norm(self.conv(x))`, nested or in two statements, where neither is used for anything else."""
    assert isinstance(owner.node, ast.ClassDef)
    for method in owner.node.body:
        if not isinstance(method, FUNCTIONS):
            continue
        for call in find(method, ast.Call):
            if not _is_own(call.func) or len(call.args) != 1 or call.keywords:
                continue
            inner = _result_of(owner.outline, call)
            if inner is None or not _is_own(inner.func):
                continue
            names = (_attribute(inner.func), _attribute(call.func))
            convs = layers_behind(resolver, Value(owner.outline, inner.func), CONVOLUTIONS)
            norms = layers_behind(resolver, Value(owner.outline, call.func), NORMS)
            if convs and norms and all(_uses(owner.node, name) == 1 for name in names):
                yield LayerPair(convs[0], norms[0], names)


def _result_of(file: Outline, call: ast.Call) -> ast.Call | None:
    """The call whose result is the only argument of `call`: written in it, or in the statement before."""
    given = call.args[0]
    if isinstance(given, ast.Call):
        return given
    statement = file.statement(call)
    block = file.block(statement)
    at = block.index(statement) if statement in block else 0
    before = block[at - 1] if at else None
    if not (isinstance(given, ast.Name) and isinstance(before, ast.Assign) and isinstance(before.value, ast.Call)):
        return None
    targets = [target.id for target in before.targets if isinstance(target, ast.Name)]
    if targets != [given.id]:
        return None
    reads = [
        node
        for node in find(file.function(statement), ast.Name)
        if node.id == given.id and isinstance(node.ctx, ast.Load) and node is not given and _follows(node, statement)
    ]
    rebinds = isinstance(statement, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == given.id for target in statement.targets
    )
    return before.value if rebinds or not reads else None


def _follows(node: ast.expr, statement: ast.stmt) -> bool:
    return (node.lineno, node.col_offset) >= (statement.lineno, statement.col_offset)


def _dict_value(part: ast.expr) -> ast.expr:
    """The module of `("name", module)`, as `OrderedDict` takes it."""
    return part.elts[1] if isinstance(part, ast.Tuple) and len(part.elts) == 2 else part


def _uses(owner: ast.ClassDef, name: str) -> int:
    """How often methods read `self.<name>`."""
    return sum(
        isinstance(node.ctx, ast.Load) and node.attr == name and _is_own(node) for node in find(owner, ast.Attribute)
    )


def _is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _attribute(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else ""


def _may_name(node: ast.expr) -> bool:
    """A name that may stand for a class or a function: `Block`, `layers.Block`, `self._make_layer`."""
    return isinstance(node, ast.Name | ast.Attribute)
