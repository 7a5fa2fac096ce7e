"""Numbers that are reduced among the ranks in every step to be logged now and then: reduce them then."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Fixer
from .edits import Patch
from .outline import LOOPS, Outline, find, last_name
from .resolve import Resolver, Value
from .scene import Scene, scene, searcher

_SLUG = "redundant-collective"
_EVERY = 50
_REDUCES = frozenset({"all_reduce", "reduce", "all_gather", "all_gather_into_tensor"})
_LOGS = re.compile(
    r"^(print|log\w*|info|debug|update|add_scalars?|append|write|set_postfix\w*|item|format|track|record|tolist|wandb)$"
)
"""Calls whose argument is only looked at."""


@dataclass(frozen=True, slots=True)
class _Reduction:
    """A statement of a loop's body that reduces a number, and what uses it afterwards in that body."""

    outline: Outline
    statement: ast.stmt
    name: str
    uses: list[ast.stmt]
    loop: ast.For | ast.AsyncFor | ast.While


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    found = _reduction(view) if view is not None else None
    if found is None:
        return None
    file = found.outline
    place = file.location(found.statement, case.location)
    related = tuple(Related("used here", file.location(use, case.location)) for use in found.uses)
    fix = _moved(found) or _guarded(found)
    if fix is None:
        return Confirmation(place, (), related, "the loop counts no steps by which to reduce less often")
    return Confirmation(place, (fix,), related)


def _reduction(view: Scene) -> _Reduction | None:
    """The innermost statement on the stack that stands in a loop and reduces what is only logged."""
    for frame in view.frames:
        for statement in frame.statements:
            loop = frame.outline.parents[statement]
            name = _reduced(view.resolver, frame.outline, statement)
            if not name or not isinstance(loop, LOOPS) or statement not in loop.body:
                continue
            later = loop.body[loop.body.index(statement) + 1 :]
            uses = [one for one in later if any(node.id == name for node in find(one, ast.Name))]
            if uses and all(_only_logs(frame.outline, one, name) for one in uses):
                return _Reduction(frame.outline, statement, name, uses, loop)
    return None


def _reduced(resolver: Resolver, file: Outline, statement: ast.stmt) -> str:
    """The name of what a statement reduces: `dist.all_reduce(loss)`, or `mean = reduce_mean(loss)`; "" if none."""
    match statement:
        case ast.Expr(value=ast.Call(func=func, args=[ast.Name(id=name), *_])) if _is_reduce(file, func):
            return name
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func)):
            made = resolver.definition(Value(file, func))
            inner = find(made.node, ast.Call) if made is not None else []
            return name if made is not None and any(_is_reduce(made.outline, one.func) for one in inner) else ""
        case _:
            return ""


def _is_reduce(file: Outline, func: ast.expr) -> bool:
    return last_name(func) in _REDUCES and file.dotted(func).startswith(("torch.distributed.", "dist."))


def _only_logs(file: Outline, statement: ast.stmt, name: str) -> bool:
    """Whether every use of a name in a statement ends in a call that looks at it, or in a sum kept for that."""
    for node in find(statement, ast.Name):
        if node.id != name:
            continue
        calls = [above for above in file.ancestors(node) if isinstance(above, ast.Call)]
        if not any(_LOGS.match(last_name(call.func)) for call in calls):
            return False
    return True


def _moved(found: _Reduction) -> Fix | None:
    """Where one `if` of the loop holds all uses: the statement becomes its first."""
    file = found.outline
    branch = found.uses[0]
    if len(found.uses) != 1 or not isinstance(branch, ast.If) or branch.orelse or not _counts(branch.test):
        return None
    names = {node.id for node in find(branch.test, ast.Name)}
    if found.name in names or not all(map(file.indentation, (found.statement, branch.body[0]))):
        return None
    between = found.loop.body[found.loop.body.index(found.statement) + 1 : found.loop.body.index(branch)]
    needed = {node.id for node in find(found.statement, ast.Name)} - {found.name}
    changed = {node.id for one in between for node in find(one, ast.Name) if isinstance(node.ctx, ast.Store)}
    safety = Safety.UNSAFE if needed & changed else Safety.SAFE
    patch = Patch(file)
    first = branch.body[0]
    text = file.segment(found.statement)
    patch.insert(file.span(first)[0], f"{text}{file.newline}{file.indentation(first)}")
    patch.delete([found.statement])
    return Fix(_SLUG, "Reduce it only when it is logged", safety, patch.edits())


def _counts(test: ast.expr) -> bool:
    """Whether a condition is `i % n == 0` or like it: it asks a count alone, so all ranks answer alike."""
    is_modulo = any(isinstance(node.op, ast.Mod) for node in find(test, ast.BinOp))
    words = {node.id for node in find(test, ast.Name)} | {node.attr for node in find(test, ast.Attribute)}
    return is_modulo and not find(test, ast.Call) and not any("rank" in word.lower() for word in words)


def _guarded(found: _Reduction) -> Fix | None:
    """Put the reduction and its uses, which follow at once, under a condition on the loop's count."""
    file, body = found.outline, found.loop.body
    count = _count_of(found.loop)
    start = body.index(found.statement)
    run = body[start : start + 1 + len(found.uses)]
    if not count or run[1:] != found.uses or any(_binds(one, found.name) for one in found.uses):
        return None
    if not all(map(file.indentation, run)) or any(one.lineno != one.end_lineno for one in run):
        return None
    indent = file.indentation(found.statement)
    outer = file.indentation(found.loop)
    unit = indent.removeprefix(outer) or "    "
    patch = Patch(file)
    patch.insert(file.line_starts[run[0].lineno - 1], f"{indent}if {count} % {_EVERY} == 0:{file.newline}{unit}")
    for one in run[1:]:
        patch.insert(file.line_starts[one.lineno - 1], unit)
    return Fix(_SLUG, f"Reduce and log only every {_EVERY} steps", Safety.UNSAFE, patch.edits())


def _count_of(loop: ast.For | ast.AsyncFor | ast.While) -> str:
    """The name that a loop over `enumerate(...)` or `range(...)` counts by; "" if it counts nothing."""
    if isinstance(loop, ast.While):
        return ""
    match loop.iter, loop.target:
        case ast.Call(func=ast.Name(id="enumerate")), ast.Tuple(elts=[ast.Name(id=name), *_]):
            return name
        case ast.Call(func=ast.Name(id="range")), ast.Name(id=name):
            return name
        case _:
            return ""


def _binds(statement: ast.stmt, name: str) -> bool:
    return any(node.id == name and isinstance(node.ctx, ast.Store) for node in find(statement, ast.Name))


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, ("all_reduce", "reduce")), required=True)
