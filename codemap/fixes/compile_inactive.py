"""A model that is compiled in the source and runs uncompiled: why that may be."""

from __future__ import annotations

import ast

from ...analyzer.findings import Related
from .base import Case, Confirmation, Fixer
from .compiled import Compilation, compiled_name, in_workspace, is_compilation
from .models import ModelCall, constructions, model_call, only_model_call
from .outline import Outline, last_name
from .resolve import Value
from .scene import Scene, scene, searcher
from .settings import constants

_SLUG = "compile-inactive"


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    model = model_call(view) or only_model_call(view)
    if model is None:
        return None
    for compilation in in_workspace(view):
        if not _is_of(view, compilation, model):
            continue
        reason = _reason(view, compilation, model)
        if reason is None:
            continue
        file = compilation.outline
        place = file.location(file.statement(compilation.node), case.location)
        called = model.outline.location(model.outline.statement(model.call), case.location)
        related = () if called == place else (Related("the model that runs", called),)
        return Confirmation(place, (), related, reason)
    return None


def _confirm_here(case: Case) -> Confirmation | None:
    """The same, at a place that compiles something itself: for traces that name no line."""
    view = scene(case)
    if view is None or not any(is_compilation(view.here.outline, call) for call in view.here.calls()):
        return None
    return _confirm(case)


def _is_of(view: Scene, compilation: Compilation, model: ModelCall) -> bool:
    """Whether what is compiled is the model that runs."""
    call = compilation.call
    if call is None:
        return False
    if call.args:
        given = call.args[0]
    elif isinstance(call.func, ast.Attribute):
        given = call.func.value
    else:
        return False
    built = {one.node for one in constructions(view.resolver, Value(compilation.outline, given))}
    return bool(built & {one.node for one in model.constructions})


def _reason(view: Scene, compilation: Compilation, model: ModelCall) -> str | None:
    """Why the compiled model does not run; None where it was perhaps not asked for."""
    file, node = compilation.outline, compilation.node
    tests = _conditions(file, node)
    if tests:
        return _unmet(view, file, tests)
    statement = file.statement(node)
    is_method = isinstance(node, ast.Call) and not node.args
    if isinstance(statement, ast.Expr) and not is_method:
        return "what torch.compile gives is dropped: it does not change the model in place"
    target = compiled_name(compilation)
    called = last_name(model.call.func)
    if target is not None and last_name(target) != called and file is model.outline:
        return f"{last_name(target)} is compiled, {called} is called"
    return "compilation may have failed silently (suppress_errors, or a limit of recompilations)"


def _conditions(file: Outline, node: ast.expr) -> list[ast.expr]:
    """The conditions that the compilation depends on, those kept in names too."""
    tests: list[ast.expr] = []
    child: ast.AST = node
    for above in file.ancestors(node):
        if isinstance(above, ast.IfExp | ast.If) and child is not above.test:
            tests.append(above.test)
        elif isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
            break
        child = above
    for test in list(tests):
        if isinstance(test, ast.Name):
            tests += [one.value for one in file.lookup(test) if one.value is not None]
    return tests


def _unmet(view: Scene, file: Outline, tests: list[ast.expr]) -> str | None:
    """In words, the condition that turns compiling off although it is asked for: a setting that says so is on, and
    others stand beside it."""
    for test in tests:
        if not (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)):
            continue
        asked = [part for part in test.values if "compile" in last_name(part).lower()]
        others = [part for part in test.values if part not in asked]
        if asked and others and all(_is_on(view, file, part) for part in asked):
            wanted = " and ".join(file.segment(part) for part in others)
            return f"compiling is asked for, but done only if {' '.join(wanted.split())}"
    return None


def _is_on(view: Scene, file: Outline, setting: ast.expr) -> bool:
    found = constants(view.resolver, Value(file, setting))
    values = [one.node.value for one in found if isinstance(one.node, ast.Constant)]
    return bool(values) and all(values)


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm_here, ("torch.compile", ".compile(")), required=True)
