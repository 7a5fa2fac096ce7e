"""A loop that asks every gradient for its norm, or whether it is finite: one multi-tensor norm, read once.

A sum of squared norms becomes the square of the total norm, a running maximum the total of order infinity. A check
stays as it is written, and runs only where the total norm is not finite, which it is whenever any element is not: names
and counts are found as before.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field, replace

from ...analyzer.findings import Fix, Location, Safety
from .base import Case, Confirmation, Cure, Fixer
from .edits import Patch
from .finite import Reader, SquaredNorm, reads_value
from .imports import name_for
from .outline import Outline, find, last_name
from .parameters import Walk, clause_walk, loop_walk, replace_lines, unused_name
from .scene import scene, searcher
from .versions import is_older

_SLUG = "per-parameter-grad-scan"
_TITLE = "Take one norm over all gradients and read it once"
_BY_HAND = "the loop does more than sum squared norms, keep the largest or look for values that are not finite"


@dataclass(slots=True)
class _Body:
    """What a loop over parameters does, as far as one norm can stand in for it."""

    aliases: dict[str, ast.expr] = field(default_factory=dict)
    conditions: list[str] = field(default_factory=list)
    sums: list[tuple[ast.stmt, str, SquaredNorm]] = field(default_factory=list)
    """Statements that add a squared norm to a name."""
    peaks: list[tuple[str, str]] = field(default_factory=list)
    """Names that keep the largest absolute value, and of which tensor."""
    checks: list[tuple[ast.stmt, str]] = field(default_factory=list)
    """Statements that act only on a tensor that is not finite."""


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    for frame in view.frames[:2]:
        for statement in frame.statements:
            if (answer := _at(case, frame.outline, statement)) is not None:
                return answer
    return None


def _at(case: Case, file: Outline, statement: ast.stmt) -> Confirmation | None:
    """The scan that a statement is, or is part of."""
    if _is_guarded(file, statement):
        return None
    place = file.location(statement, case.location)
    for node in (*find(statement, ast.GeneratorExp), *find(statement, ast.ListComp)):
        if file.statement(node) is statement and (walk := clause_walk(file, node)) is not None:
            fix = _of_comprehension(walk, node)
            if fix is not None:
                return _answer(case, place, fix)
    found = loop_walk(file, statement)
    if found is None or not any(reads_value(part) for part in found[0].body):
        return None
    return _answer(case, place, _of_loop(*found))


def _answer(case: Case, place: Location, fix: Fix | None) -> Confirmation:
    if is_older(case.device.torch_version, (2, 6)):
        return Confirmation(place, (), (), "torch.nn.utils.get_total_norm needs PyTorch 2.6")
    return Confirmation(place, (fix,)) if fix is not None else Confirmation(place, (), (), _BY_HAND)


def _is_guarded(file: Outline, statement: ast.stmt) -> bool:
    """Whether the statement looks at a norm over everything, or runs only where one is not finite."""
    guards = [above.test for above in file.ancestors(statement) if isinstance(above, ast.If)]
    calls = [call for root in (statement, *guards) for call in find(root, ast.Call)]
    return any(last_name(call.func) == "get_total_norm" for call in calls) or any(
        last_name(call.func) == "isfinite" for guard in guards for call in find(guard, ast.Call)
    )


def _of_comprehension(walk: Walk, node: ast.GeneratorExp | ast.ListComp) -> Fix | None:
    """The fix of `sum(...)` over squared norms, or of `any(...)` or `all(...)` over checks."""
    file = walk.file
    call = file.parents[node]
    if not (isinstance(call, ast.Call) and call.args == [node] and not call.keywords):
        return None
    folds = call.func.id if isinstance(call.func, ast.Name) else ""
    reader, patch = Reader(walk, {}), Patch(file)
    if folds == "sum" and (squared := reader.squared_norm(node.elt)) is not None:
        text = f"{_total(patch, walk.gathered(squared.tensor), squared.order)}.item() ** {squared.order}"
        is_operand = isinstance(file.parents[call], ast.BinOp | ast.UnaryOp | ast.Attribute)
        patch.replace(call, f"({text})" if is_operand else text)
        return Fix(_SLUG, _TITLE, Safety.SAFE, patch.edits())
    tensor = reader.bad(node.elt) if folds == "any" else reader.good(node.elt) if folds == "all" else None
    if tensor is None or not walk.is_repeatable():
        return None
    is_finite = f"{name_for(patch, 'torch.isfinite')}({_total(patch, walk.gathered(tensor), '2')})"
    start, end = file.span(call)
    patch.insert(start, f"(not {is_finite} and " if folds == "any" else f"(bool({is_finite}) or ")
    patch.insert(end, ")")
    return Fix(_SLUG, _TITLE, Safety.SAFE, patch.edits())


def _of_loop(loop: ast.For, walk: Walk) -> Fix | None:
    """The fix of a loop that only sums squared norms and acts on what is not finite."""
    body = _Body()
    if loop.orelse or not _read_body(body, walk, loop.body) or not _is_replaceable(body, walk, loop):
        return None
    file, patch = walk.file, Patch(walk.file)
    if body.peaks:
        name, tensor = body.peaks[0]
        walk = replace(walk, conditions=tuple(body.conditions))
        total = _total(patch, walk.gathered(tensor), 'float("inf")')
        replace_lines(patch, loop, [f"{name} = max({name}, {total}.item())"], without=None)
        # Python's `max` passes over a gradient that is NaN, and keeps what it had.
        return Fix(_SLUG, _TITLE, Safety.UNSAFE, patch.edits())
    tensor, order = body.checks[0][1] if body.checks else body.sums[0][2].tensor, "2"
    grads = unused_name(file, loop, ("grads", "all_grads", "scanned_grads"))
    narrowed = replace(walk, conditions=tuple(body.conditions))
    lines = narrowed.gathered_lines(grads, tensor, len(file.indentation(loop)))
    if body.sums:
        order = body.sums[0][2].order
        norm = unused_name(file, loop, ("grad_norm", "total_grad_norm", "scanned_norm"))
        lines.append(f"{norm} = {_total(patch, grads, order)}")
        lines += [f"{name} += {norm}.item() ** {order}" for _, name, _ in body.sums]
        total = norm
    else:
        total = _total(patch, grads, order)
    if body.checks:
        lines.append(f"if not {name_for(patch, 'torch.isfinite')}({total}):")
    replace_lines(patch, loop, lines, without=[one for one, _, _ in body.sums] if body.checks else None)
    return Fix(_SLUG, _TITLE, Safety.SAFE, patch.edits())


def _is_replaceable(body: _Body, walk: Walk, loop: ast.For) -> bool:
    """Whether all that the loop does is about one tensor, and nothing depends on the order or is read behind it."""
    if body.peaks and (len(body.peaks) > 1 or body.sums or body.checks):
        return False
    tensors = {norm.tensor for _, _, norm in body.sums} | {tensor for _, tensor in (*body.checks, *body.peaks)}
    orders = {norm.order for _, _, norm in body.sums}
    if len(tensors) != 1 or len(orders) > 1:
        return False
    if not body.checks:
        return not _is_read_behind(walk.file, loop, {*body.aliases, *(n.id for n in find(loop.target, ast.Name))})
    summed = {name for _, name, _ in body.sums}
    acting = [node for check, _ in body.checks for node in ast.walk(check)]
    leaves = any(isinstance(node, ast.Break | ast.Return | ast.Continue) for node in acting)
    reads_sum = any(isinstance(node, ast.Name) and node.id in summed for node in acting)
    return walk.is_repeatable() and not (summed and (leaves or reads_sum))


def _is_read_behind(file: Outline, loop: ast.For, names: set[str]) -> bool:
    """Whether something behind the loop reads what only the loop gives a value to."""
    function, inside = file.function(loop), set(ast.walk(loop))
    return any(
        node.id in names
        and node not in inside
        and isinstance(node.ctx, ast.Load)
        and all(binding.node in inside for binding in file.bindings(function, node.id))
        for node in find(function, ast.Name)
    )


def _total(patch: Patch, tensors: str, order: str) -> str:
    name = name_for(patch, "torch.nn.utils.get_total_norm")
    return f"{name}({tensors})" if order in ("2", "2.0") else f"{name}({tensors}, {order})"


def _read_body(body: _Body, walk: Walk, statements: list[ast.stmt]) -> bool:
    """Sort a loop's statements into `body`; False where one is of no kind that a norm stands in for."""
    for statement in statements:
        reader = Reader(walk, body.aliases)
        match statement:
            case ast.If(test=test, body=[ast.Continue()], orelse=[]) if not reads_value(test):
                condition = reader.condition(test, negated=True)
            case ast.If(test=test, body=inner, orelse=[]) if statement is statements[-1] and not reads_value(test):
                condition = reader.condition(test)
                if condition is None or not _read_body(body, walk, inner):
                    return False
            case ast.If(test=test, orelse=[]) if (tensor := reader.bad(test)) is not None:
                body.checks.append((statement, tensor))
                continue
            case ast.Assert(test=test) if (tensor := reader.good(test)) is not None:
                body.checks.append((statement, tensor))
                continue
            case ast.AugAssign() | ast.Assign() if (added := _added(statement)) is not None:
                squared = reader.squared_norm(added[1])
                if squared is None:
                    return False
                body.sums.append((statement, added[0], squared))
                continue
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Name(id="max"), args=[ast.Name(id=kept), new], keywords=[]),
            ) if kept == name and (tensor := reader.peak(new)) is not None:
                body.peaks.append((name, tensor))
                continue
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                body.aliases[name] = value
                continue
            case _:
                return False
        if condition is None:
            return False
        body.conditions.append(condition)
    return True


def _added(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """Name and summand of `total += x` and `total = total + x`."""
    match statement:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
            return name, value
        case ast.Assign(
            targets=[ast.Name(id=name)], value=ast.BinOp(left=ast.Name(id=left), op=ast.Add(), right=value)
        ) if left == name:
            return name, value
        case _:
            return None


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, (".grad", "isfinite(", "isnan(", ".norm(")),
    cure=Cure(re.compile(r"\bget_total_norm\(|\bclip_grad_norm_\(")),
)
