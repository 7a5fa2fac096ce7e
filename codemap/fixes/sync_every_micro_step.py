"""Gradient accumulation that exchanges gradients after each micro-batch: exchange with the last one only."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Cure, Fixer
from .ddp import is_wrapper
from .edits import Patch
from .imports import name_for
from .outline import LOOPS, Outline, find, last_name
from .resolve import Resolver, Value
from .scene import Scene, scene, searcher

_SLUG = "sync-every-micro-step"
_PURE_CALLS = frozenset({"len", "int", "bool", "max", "min"})
_READS_GRADIENTS = re.compile(r"\.grad\b|clip_grad|unscale_|grad_norm")


@dataclass(frozen=True, slots=True)
class _Accumulation:
    """A loop's body: the statements from the forward call to the backward pass, and the `if` that steps."""

    outline: Outline
    forward: ast.Call
    backward: ast.Call
    run: list[ast.stmt]
    between: list[ast.stmt]
    """What stands between the backward pass and the `if`."""
    steps: ast.If


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    loops = (_accumulation(view, frame.outline, frame.statements) for frame in view.frames)
    found = next((one for one in loops if one is not None), None)
    if found is None:
        return None
    file = found.outline
    place = file.location(file.statement(found.backward), case.location)
    related = (Related("the optimizer steps here", file.location(found.steps, case.location)),)
    if reason := _obstacle(found):
        return Confirmation(place, (), related, reason)
    return Confirmation(place, (_fix(found),), related)


def _accumulation(view: Scene, file: Outline, statements: tuple[ast.stmt, ...]) -> _Accumulation | None:
    """The accumulation loop whose body holds one of the statements."""
    for statement in statements:
        loop = next((above for above in file.ancestors(statement) if isinstance(above, LOOPS)), None)
        if loop is not None and (found := _in_body(view.resolver, file, loop.body)) is not None:
            return found
    return None


def _in_body(resolver: Resolver, file: Outline, body: list[ast.stmt]) -> _Accumulation | None:
    backward = [(i, call) for i, one in enumerate(body) for call in find(one, ast.Call) if _is_backward(call)]
    if len(backward) != 1:
        return None
    last, call = backward[0]
    forward = [
        (i, one)
        for i, statement in enumerate(body[: last + 1])
        for one in find(statement, ast.Call)
        if _is_wrapped(resolver, file, one)
    ]
    steps = [(i, one) for i, one in enumerate(body) if i > last and isinstance(one, ast.If) and _steps(one)]
    if not forward or len(steps) != 1 or any(_steps(one) for one in body if one is not steps[0][1]):
        return None
    if "no_sync" in "".join(file.segment(one) for one in body):
        return None
    first, model = min(forward, key=lambda pair: pair[0])
    at, branch = steps[0]
    return _Accumulation(file, model, call, body[first : last + 1], body[last + 1 : at], branch)


def _is_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "backward" and len(call.args) == 0


def _is_wrapped(resolver: Resolver, file: Outline, call: ast.Call) -> bool:
    """Whether a call runs a model that was wrapped; not a method of it or of what it gives."""
    if not isinstance(call.func, ast.Name | ast.Attribute | ast.Subscript):
        return False
    if isinstance(call.func, ast.Attribute) and last_name(call.func.value) not in ("self", "cls"):
        return False

    def keeps(value: Value) -> bool:
        return not isinstance(value.node, ast.Call) or last_name(value.node.func) in ("to", "cuda", "compile")

    return bool(resolver.find(Value(file, call.func), is_wrapper, keeps))


def _steps(statement: ast.stmt) -> bool:
    """Whether a statement steps an optimizer (or a scaler one)."""
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "step"
        and re.search(r"opt|scaler|trainer_op", last_name(call.func.value), re.IGNORECASE)
        for call in find(statement, ast.Call)
    )


def _obstacle(found: _Accumulation) -> str:
    """Why the statements can't be put under `no_sync`; "" if they can."""
    file, test = found.outline, found.steps.test
    names = {node.id for node in find(test, ast.Name)}
    changed = {
        node.id
        for one in (*found.run, *found.between)
        for node in find(one, ast.Name)
        if isinstance(node.ctx, ast.Store | ast.Del)
    }
    if late := sorted(names & changed):
        return f"whether the optimizer steps is known only after the backward pass ({', '.join(late)})"
    if any(last_name(call.func) not in _PURE_CALLS for call in find(test, ast.Call)) or find(test, ast.NamedExpr):
        return "whether the optimizer steps is asked by a call, which cannot be asked twice"
    if any(
        isinstance(node.value, str) and (node.end_lineno or node.lineno) > node.lineno
        for one in found.run
        for node in find(one, ast.Constant)
    ):
        return "a text over several lines stands between, which cannot be indented"
    if not all(file.indentation(one) for one in (found.run[0], found.run[-1])):
        return "several statements share a line"
    return ""


def _fix(found: _Accumulation) -> Fix:
    file = found.outline
    patch = Patch(file)
    indent = file.indentation(found.run[0])
    unit = indent.removeprefix(_outer_indentation(file, found.run[0])) or "    "
    test, model = file.segment(found.steps.test), file.segment(found.forward.func)
    if isinstance(found.steps.test, ast.BoolOp | ast.IfExp | ast.Lambda) or "\n" in test:
        test = f"({' '.join(test.split())})"
    header = f"with {name_for(patch, 'contextlib.nullcontext')}() if {test} else {model}.no_sync():"
    first, last = found.run[0].lineno, found.run[-1].end_lineno or found.run[-1].lineno
    starts = file.line_starts
    patch.insert(starts[first - 1], f"{indent}{header}{file.newline}{unit}")
    for line in range(first + 1, last + 1):
        if file.file.lines[line - 1].strip():
            patch.insert(starts[line - 1], unit)
    reads = any(_READS_GRADIENTS.search(file.segment(one)) for one in found.between)
    safety = Safety.UNSAFE if reads else Safety.SAFE
    return Fix(_SLUG, "Exchange gradients only before the optimizer steps (no_sync)", safety, patch.edits())


def _outer_indentation(file: Outline, statement: ast.stmt) -> str:
    outer = next(above for above in file.ancestors(statement) if isinstance(above, ast.stmt))
    return file.indentation(outer)


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, (".backward(",)), cure=Cure(re.compile(r"\.no_sync\(")))
