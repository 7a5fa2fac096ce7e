"""What names are bound to in one scope."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ..nodes import children

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Binding:
    """One place that gives a name its value."""

    name: str
    value: ast.expr | None
    """The expression bound; None for a parameter without default, an import, a definition."""
    node: ast.AST
    """The statement, comprehension, argument, definition or import that binds."""
    index: int | None = None
    """Position in the value when it is unpacked."""
    is_element: bool = False
    """The name is bound to what iterating the value gives (a loop's target)."""


def walk_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope's own body in the order of the text, without the bodies of functions and classes in it."""
    stack = list(children(scope))[::-1]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            stack.extend(reversed(list(children(node))))


def bindings_of(scope: ast.AST) -> Iterator[Binding]:
    """All bindings in a scope's own body, in the order of the text; parameters first."""
    if isinstance(scope, (*FUNCTIONS, ast.Lambda)):
        yield from _parameters(scope.args)
    for node in walk_scope(scope):
        match node:
            case ast.Assign():
                for target in node.targets:
                    yield from _targets(target, node.value, node)
            case ast.AnnAssign() | ast.NamedExpr():
                if node.value is not None:
                    yield from _targets(node.target, node.value, node)
            case ast.AugAssign(target=ast.Name(id=name)):
                yield Binding(name, node.value, node)
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                yield from _targets(node.target, node.iter, node, is_element=True)
            case ast.withitem(optional_vars=ast.expr() as target):
                yield from _targets(target, node.context_expr, node)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield Binding(node.name, None, node)
            case ast.Import() | ast.ImportFrom():
                for item in node.names:
                    yield Binding(item.asname or item.name.partition(".")[0], None, node)
            case _:
                pass


def _parameters(args: ast.arguments) -> Iterator[Binding]:
    plain = args.posonlyargs + args.args
    defaults = [None] * (len(plain) - len(args.defaults)) + args.defaults
    for arg, default in zip(plain + args.kwonlyargs, defaults + args.kw_defaults, strict=True):
        yield Binding(arg.arg, default, arg)
    for arg in (args.vararg, args.kwarg):
        if arg is not None:
            yield Binding(arg.arg, None, arg)


def _targets(
    target: ast.expr, value: ast.expr, node: ast.AST, index: int | None = None, is_element: bool = False
) -> Iterator[Binding]:
    if isinstance(target, ast.Name):
        yield Binding(target.id, value, node, index, is_element)
    elif isinstance(target, ast.Starred):
        yield from _targets(target.value, value, node, None, is_element)
    elif isinstance(target, ast.Tuple | ast.List):
        values = value.elts if isinstance(value, ast.Tuple | ast.List) and not is_element else None
        paired = values is not None and len(values) == len(target.elts)
        for position, part in enumerate(target.elts):
            if paired and values is not None:
                yield from _targets(part, values[position], node, None, is_element)
            else:
                yield from _targets(part, value, node, position, is_element)
