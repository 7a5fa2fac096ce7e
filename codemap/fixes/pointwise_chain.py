"""A chain of elementwise operators: compile the function that holds it."""

from __future__ import annotations

import ast

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Fixer
from .bindings import FUNCTIONS, walk_scope
from .compiled import is_compiled
from .edits import Patch
from .imports import name_for
from .outline import Outline, find, last_name
from .scene import scene, searcher
from .versions import is_older

_SLUG = "pointwise-chain"
_LOOP_WORDS = ("backward", "zero_grad", "step", "train", "eval", "DataLoader", "item", "tolist", "numpy", "print")
"""Calls of functions that do more than compute: what breaks the graph, or belongs to a training loop."""
_ELEMENTWISE = (
    "exp",
    "log",
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "sqrt",
    "rsqrt",
    "pow",
    "clamp",
    "abs",
    "erf",
    "softplus",
)
_LONG = 4
_MATHS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.AugAssign)


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None or not view.here.statements:
        return None
    file, statement = view.here.outline, view.here.statements[0]
    function = file.function(statement)
    if not _computes(view.here.statements) or is_compiled(view.resolver, file, function):
        return None
    place = file.location(statement, case.location)
    if not isinstance(function, FUNCTIONS) or is_older(case.device.torch_version, (2, 0)):
        return Confirmation(place)
    called = {last_name(node.func) for node in walk_scope(function) if isinstance(node, ast.Call)}
    if called & set(_LOOP_WORDS) or _is_generator(function) or isinstance(function, ast.AsyncFunctionDef):
        return Confirmation(place, (), (), "its function does more than compute: move the chain into one of its own")
    return Confirmation(place, (_fix(file, function),))


def _confirm_long(case: Case) -> Confirmation | None:
    """The same where a statement holds a chain by itself: for traces that name no line."""
    view = scene(case)
    if view is None or not view.here.statements:
        return None
    file = view.here.outline
    is_long = _operations(file, view.here.statements[0]) >= _LONG
    return _confirm(case) if is_long and isinstance(file.function(view.here.statements[0]), FUNCTIONS) else None


def _operations(file: Outline, statement: ast.stmt) -> int:
    """Elementwise operations that a statement certainly does: named ones, and maths beside them."""
    calls = [call for call in find(statement, ast.Call) if last_name(call.func).rstrip("_") in _ELEMENTWISE]
    is_on_tensors = any(isinstance(call.func, ast.Attribute) and not _is_scalar(file, call) for call in calls)
    return len(calls) + len(find(statement, ast.BinOp)) if is_on_tensors else 0


def _is_scalar(file: Outline, call: ast.Call) -> bool:
    return file.dotted(call.func).startswith(("math.", "numpy."))


def _computes(statements: tuple[ast.stmt, ...]) -> bool:
    """Whether the statements hold operations or calls that may be elementwise."""
    return any(isinstance(node, (*_MATHS, ast.Call)) for one in statements for node in ast.walk(one))


def _is_generator(function: ast.AST) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom | ast.Await) for node in walk_scope(function))


def _fix(file: Outline, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Fix:
    """A decorator: innermost, below those that are there."""
    patch = Patch(file)
    start = file.line_starts[function.lineno - 1]
    patch.insert(start, f"{file.indentation(function)}@{name_for(patch, 'torch.compile')}{file.newline}")
    return Fix(_SLUG, f"Compile {function.name} (torch.compile)", Safety.UNSAFE, patch.edits())


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm_long, tuple(f"{name}(" for name in _ELEMENTWISE)))
