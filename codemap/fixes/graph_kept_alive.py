"""A tensor kept from step to step with its graph: `.detach()` where it is put away."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Fixer
from .bindings import walk_scope
from .calls import edit_call
from .edits import Patch
from .gradients import is_off, never_differentiates
from .outline import LOOPS, Outline, find, last_name
from .resolve import Value
from .scene import Scene, scene, searcher

_SLUG = "graph-kept-alive"
_RESULTS = re.compile(r"loss|out|pred|logit|score|feat|embed|recon|err", re.IGNORECASE)
_STEPS = re.compile(r"loader|batch|dataset|epoch|steps|iter|images|frames|clips|samples", re.IGNORECASE)
_MODELS = re.compile(r"model|net|encoder|decoder|generator|discriminator|criterion|loss|backbone", re.IGNORECASE)


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    file = view.here.outline
    for statement in view.here.statements:
        kept = _kept(file, statement)
        if kept is not None and _is_leak(view, statement, *kept):
            return _detached(view, statement, kept[1])
        for call in find(statement, ast.Call) if isinstance(statement, ast.Expr) else []:
            if last_name(call.func) == "backward" and _retains(call):
                return _retained(view, statement, call)
    return None


def _is_leak(view: Scene, statement: ast.stmt, held: ast.expr, item: ast.expr) -> bool:
    """Whether a tensor is put away with a graph that nothing will go through again."""
    file = view.here.outline
    if not _has_graph(file, item) or not _outlives_step(file, statement, held) or is_off(file, statement):
        return False
    return not _is_differentiated(view, held)


def _kept(file: Outline, statement: ast.stmt) -> tuple[ast.expr, ast.expr] | None:
    """The container or sum that outlives the statement, and what is put into it."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="append" | "add", value=held), args=[item], keywords=[])):
            return held, item
        case ast.AugAssign(target=ast.Name() | ast.Attribute() as held, op=ast.Add(), value=ast.List(elts=[item])):
            return held, item
        case ast.AugAssign(target=ast.Name() | ast.Attribute() as held, op=ast.Add(), value=item):
            return held, item
        case ast.Assign(targets=[ast.Name() as held], value=ast.BinOp(left=left, op=ast.Add(), right=item)) if (
            ast.unparse(left) == held.id
        ):
            return held, item
        case ast.Assign(targets=[ast.Subscript(value=held)], value=item):
            return held, item
        case _:
            return None


def _has_graph(file: Outline, item: ast.expr) -> bool:
    """Whether what is kept is a tensor that a model or a loss gave, graph and all, as far as the text shows it."""
    if isinstance(item, ast.Call):
        return _runs_model(item)
    if not isinstance(item, ast.Name):
        return False
    if _is_differentiated_itself(file, item):
        return True
    values = [binding.value for binding in file.lookup(item) if not binding.is_element]
    return bool(_RESULTS.search(item.id)) and bool(values) and all(map(_runs_model, values))


def _runs_model(value: ast.expr | None) -> bool:
    """A call of something named like a model or a loss, not of a class (`ResnetBlock(...)`)."""
    name = last_name(value.func) if isinstance(value, ast.Call) else ""
    return bool(_MODELS.search(name)) and not name[:1].isupper()


def _is_differentiated_itself(file: Outline, item: ast.Name, *, ends: bool = False) -> bool:
    """Whether `item.backward()` is called in the same function; with `ends`, so that the graph is gone then."""
    return any(
        isinstance(call.func, ast.Attribute) and last_name(call.func.value) == item.id and not (ends and _retains(call))
        for call in _backwards(file, item)
    )


def _backwards(file: Outline, node: ast.AST) -> list[ast.Call]:
    return [call for call in file.calls_in(file.function(node)) if last_name(call.func) == "backward"]


def _outlives_step(file: Outline, statement: ast.stmt, held: ast.expr) -> bool:
    """Whether the container was there before the step: an attribute, or a name bound outside a loop over steps."""
    root = held
    while isinstance(root, ast.Subscript):
        root = root.value
    if getattr(file.function(statement), "name", "") in ("forward", "__call__", "__init__"):
        return False  # part of a step
    if isinstance(root, ast.Attribute):
        return True
    loop = next((above for above in file.ancestors(statement) if isinstance(above, LOOPS)), None)
    if not isinstance(root, ast.Name) or loop is None or not _is_over_steps(loop):
        return False
    inside = set(ast.walk(loop))
    bound = [one.node for one in file.lookup(root) if one.node is not statement]
    return bool(bound) and not any(node in inside for node in bound)


def _is_over_steps(loop: ast.AST) -> bool:
    """A loop that trains, or goes over a loader or a number of steps; not one over layers or scales."""
    if any(last_name(call.func) in ("backward", "zero_grad") for call in find(loop, ast.Call)):
        return True
    over = ast.unparse(loop.iter) if isinstance(loop, ast.For | ast.AsyncFor) else ""
    return bool(_STEPS.search(over))


def _is_differentiated(view: Scene, held: ast.expr) -> bool:
    """Whether a backward pass starts from what was gathered: then its graph is meant to be kept."""
    file, text = view.here.outline, ast.unparse(held)
    for call in file.calls("backward"):
        if not isinstance(call.func, ast.Attribute):
            continue
        for start in (call.func.value, *call.args):
            if view.resolver.find(Value(file, start), lambda one: ast.unparse(one.node) == text):
                return True
    return False


def _detached(view: Scene, statement: ast.stmt, item: ast.expr) -> Confirmation:
    file, patch = view.here.outline, Patch(view.here.outline)
    patch.insert(file.span(item)[1], ".detach()")
    is_spent = isinstance(item, ast.Name) and _is_differentiated_itself(file, item, ends=True)
    is_safe = is_spent or (never_differentiates(view.case.workspace) and not _gives_back(file, statement))
    fix = Fix(
        _SLUG, "Keep the value without its graph (detach)", Safety.SAFE if is_safe else Safety.UNSAFE, patch.edits()
    )
    return Confirmation(file.location(statement, view.case.location), (fix,))


def _gives_back(file: Outline, statement: ast.stmt) -> bool:
    """Whether the function returns something, so that whoever calls it may ask for gradients."""
    return any(isinstance(node, ast.Return | ast.Yield) and node.value for node in walk_scope(file.function(statement)))


def _retains(call: ast.Call) -> bool:
    return any(
        keyword.arg == "retain_graph" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
        for keyword in call.keywords
    )


def _retained(view: Scene, statement: ast.stmt, call: ast.Call) -> Confirmation:
    """`backward(retain_graph=True)`: without it where the function has no other backward pass."""
    file, patch = view.here.outline, Patch(view.here.outline)
    place = file.location(statement, view.case.location)
    if len(_backwards(file, call)) > 1:
        return Confirmation(place, (), (), "another backward pass may need the graph that is retained")
    column = file.position(file.span(call)[0])[1] - 1
    patch.replace(call, edit_call(file.segment(call), drop=("retain_graph",), column=column))
    fix = Fix(f"{_SLUG}/retain-graph", "Let the graph go after the backward pass", Safety.UNSAFE, patch.edits())
    return Confirmation(place, (fix,))


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, (".append(", "+= ", ".add(", "retain_graph", "] = ")),
    required=True,
)
