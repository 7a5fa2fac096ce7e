"""`.contiguous()` on what a fused attention call takes: dropped, as the call takes any strides."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from ...analyzer.findings import Fix, Related, Safety
from .attention_parts import given, integer
from .base import Case, Confirmation, Fixer
from .edits import Patch
from .outline import Outline, find, last_name
from .resolve import Definition, Value
from .scene import Scene, scene, searcher

_SLUG = "copies-around-attention"
_FUSED = "scaled_dot_product_attention"
_VIEWS = ("transpose", "permute", "unsqueeze", "squeeze", "swapaxes", "movedim", "mT", "expand", "chunk", "unbind")
_NEEDS_DENSE = ("view", "data_ptr", "view_as", "numpy", "is_contiguous")
_DEPTH = 6


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    return _in_function(view) or _in_helper(view)


def _in_function(view: Scene) -> Confirmation | None:
    """Copies and call stand in one function."""
    file = view.here.outline
    statements = set(view.here.statements)
    for function in dict.fromkeys(file.function(statement) for statement in view.here.statements):
        for call in _fused_calls(file, function):
            copies = list(dict.fromkeys(_copies(file, call)))
            if not any(file.statement(one) in statements for one in (*copies, call)):
                continue
            if not copies:
                continue
            return _confirmation(view, file, copies, call)
    return None


def _confirmation(view: Scene, file: Outline, copies: list[ast.Call], call: ast.Call) -> Confirmation:
    copies = sorted(copies, key=lambda one: (one.lineno, one.col_offset))
    place = file.location(file.statement(copies[0]), view.case.location)
    attends = file.location(file.statement(call), view.case.location)
    related = () if attends.line == place.line else (Related("the fused call", attends),)
    patch = Patch(file)
    for one in copies:
        _drop(patch, one)
    fix = Fix(_SLUG, "Pass the tensors to the fused call without copying them", Safety.SAFE, patch.edits())
    return Confirmation(place, (fix,), related)


def _fused_calls(file: Outline, function: ast.AST) -> list[ast.Call]:
    return [call for call in file.calls_in(function) if last_name(call.func) == _FUSED]


def _copies(file: Outline, call: ast.Call) -> Iterator[ast.Call]:
    """The `.contiguous()` calls whose results reach the queries, keys or values of a fused call unchanged."""
    for position, name in enumerate(("query", "key", "value")):
        operand = given(call, name, position)
        if operand is not None and not isinstance(operand, ast.Starred):
            yield from _behind(file, call, operand, _DEPTH)
    for starred in (arg.value for arg in call.args if isinstance(arg, ast.Starred)):
        yield from _behind(file, call, starred, _DEPTH)


def _behind(file: Outline, call: ast.Call, node: ast.expr, depth: int) -> Iterator[ast.Call]:
    if depth == 0:
        return
    match node:
        case ast.Call(func=ast.Attribute(attr="contiguous", value=inner), args=[], keywords=[]):
            if not _moves_last(inner):
                yield node
            yield from _behind(file, call, inner, depth - 1)
        case ast.Call(func=ast.Attribute(attr=attr, value=inner)) if attr in _VIEWS:
            yield from _behind(file, call, inner, depth - 1)
        case ast.GeneratorExp(elt=element) | ast.ListComp(elt=element):
            yield from _behind(file, call, element, depth - 1)
        case ast.Call(func=ast.Name(id="map"), args=[ast.Lambda(body=body), *_]):
            yield from _behind(file, call, body, depth - 1)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _behind(file, call, part, depth - 1)
        case ast.Name():
            value = _last_value(file, call, node)
            if value is not None and not _needs_dense(file, node.id):
                yield from _behind(file, call, value, depth - 1)
        case _:
            return


def _moves_last(node: ast.expr) -> bool:
    """Whether a view moves the last dimension, which fused kernels need dense: there the copy serves."""
    match node:
        case ast.Attribute(attr="mT" | "T" | "mH"):
            return True
        case ast.Call(func=ast.Attribute(attr="transpose" | "swapaxes"), args=args):
            return any(integer(arg) in (-1, 3) for arg in args)
        case ast.Call(func=ast.Attribute(attr="permute"), args=args):
            order = args[0].elts if len(args) == 1 and isinstance(args[0], ast.Tuple | ast.List) else args
            return bool(order) and integer(order[-1]) not in (-1, len(order) - 1)
        case _:
            return False


def _last_value(file: Outline, call: ast.Call, name: ast.Name) -> ast.expr | None:
    """What a name was given last before it is read here; None where a branch may have given it something else."""
    reader = file.statement(name)
    bound = [
        binding
        for binding in file.bindings(file.function(call), name.id)
        if isinstance(binding.node, ast.stmt) and binding.node.lineno < reader.lineno
    ]
    if not bound:
        return None
    last = bound[-1]
    assert isinstance(last.node, ast.stmt)
    holders = [reader, *file.ancestors(reader)]
    is_plain = isinstance(last.node, ast.Assign | ast.AnnAssign) and file.parents[last.node] in holders
    return last.value if is_plain and not last.is_element else None


def _needs_dense(file: Outline, name: str) -> bool:
    """Whether something asks for dense memory of what a name holds: `q.view(...)`."""
    return any(
        node.attr in _NEEDS_DENSE and isinstance(node.value, ast.Name) and node.value.id == name
        for node in find(file.tree, ast.Attribute)
    )


def _drop(patch: Patch, copy: ast.Call) -> None:
    """Takes `.contiguous()` away; a statement `q = q.contiguous()` goes as a whole."""
    file = patch.outline
    assert isinstance(copy.func, ast.Attribute)
    statement = file.statement(copy)
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(value=ast.Name(id=held)))) if (
            statement.value is copy and name == held
        ):
            patch.delete([statement])
        case _:
            patch.replace_span(file.span(copy.func.value)[1], file.span(copy)[1], "")


def _in_helper(view: Scene) -> Confirmation | None:
    """The copy ends a helper (`split_heads`) of which all calls feed a fused call."""
    file = view.here.outline
    for statement in view.here.statements:
        if not isinstance(statement, ast.Return) or statement.value is None:
            continue
        copy, helper = statement.value, file.function(statement)
        if not _is_copy(copy) or isinstance(helper, ast.Module):
            continue
        calls = view.resolver.calls_of(helper.name)
        calls = [one for one in calls if _is_call_of(view, one.outline, one.node, Definition(file, helper))]
        fed = [_feeds(one.outline, one.node) for one in calls]
        if fed and all(call is not None for call in fed):
            return _helper_confirmation(view, file, copy)
    return None


def _is_copy(node: ast.expr) -> TypeGuard[ast.Call]:
    match node:
        case ast.Call(func=ast.Attribute(attr="contiguous", value=inner), args=[], keywords=[]):
            return not _moves_last(inner)
        case _:
            return False


def _helper_confirmation(view: Scene, file: Outline, copy: ast.Call) -> Confirmation:
    patch = Patch(file)
    _drop(patch, copy)
    fix = Fix(_SLUG, "Pass the tensors to the fused call without copying them", Safety.SAFE, patch.edits())
    return Confirmation(file.location(file.statement(copy), view.case.location), (fix,))


def _is_call_of(view: Scene, file: Outline, call: ast.expr, helper: Definition) -> bool:
    assert isinstance(call, ast.Call)
    meant = view.resolver.definition(Value(file, call.func))
    return meant is not None and meant.node is helper.node


def _feeds(file: Outline, helper_call: ast.expr) -> ast.Call | None:
    """The fused call that takes the result of a helper's call, which nothing asks to be dense."""
    parent = file.parents[helper_call]
    if isinstance(parent, ast.Attribute) and parent.attr in _NEEDS_DENSE:
        return None
    statement = file.statement(helper_call)
    names = {node.id for node in find(statement, ast.Name) if isinstance(node.ctx, ast.Store)}
    if any(_needs_dense(file, name) for name in names):
        return None
    for call in _fused_calls(file, file.function(helper_call)):
        read = {node.id for node in find(call, ast.Name)}
        if names & read or helper_call in list(ast.walk(call)):
            return call
    return None


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, (_FUSED, ".contiguous()")), required=True)
