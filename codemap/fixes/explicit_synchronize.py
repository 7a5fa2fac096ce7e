"""A synchronisation that the program asks for in every step: take it out."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Fixer
from .bindings import walk_scope
from .edits import Patch
from .outline import find, last_name, outline
from .scene import Scene, scene, searcher

_SLUG = "explicit-synchronize"
_MODULES = ("torch.cuda", "torch.accelerator", "torch.xpu", "torch.mps", "torch.npu", "torch.hip")
_TIMERS = ("time", "perf_counter", "perf_counter_ns", "monotonic", "process_time", "default_timer", "elapsed_time")
_MEASURING = re.compile(r"bench|measure|latency|timeit|profil|warm_?up", re.IGNORECASE)
_BLOCKING = "CUDA_LAUNCH_BLOCKING"


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None or case.device.is_cpu:
        return None
    if _BLOCKING in case.finding.message:
        return _blocking(view) or Confirmation(case.location, message=f"{_BLOCKING} is set outside the program")
    for statement in view.here.statements:
        calls = [call for call in find(statement, ast.Call) if view.here.outline.statement(call) is statement]
        if asked := [call for call in calls if _is_synchronize(call)]:
            return _confirmation(view, statement, asked[0])
    return _blocking(view) if any(_BLOCKING in value for value in _texts(view)) else None


def _texts(view: Scene) -> list[str]:
    return [view.here.outline.segment(statement) for statement in view.here.statements]


def _is_synchronize(call: ast.Call) -> bool:
    return last_name(call.func) == "synchronize"


def _confirmation(view: Scene, statement: ast.stmt, call: ast.Call) -> Confirmation | None:
    file = view.here.outline
    function = file.function(statement)
    if _MEASURING.search(getattr(function, "name", "")):
        return None  # what it measures would be wrong without
    place = file.location(statement, view.case.location)
    if file.dotted(call.func).rpartition(".")[0] not in _MODULES:
        return Confirmation(place, message="wait for a stream or an event only where its result is needed")
    if not isinstance(statement, ast.Expr) or statement.value is not call:
        return Confirmation(place, message="the synchronisation is part of a larger statement")
    if _guards_copy(function):
        return Confirmation(place, message="a copy to the host that does not wait needs it: wait for its event instead")
    patch = Patch(file)
    _take_out(patch, statement)
    fix = Fix(_SLUG, "Do without the synchronisation", Safety.UNSAFE, patch.edits())
    return Confirmation(place, (fix,), _timers(view, function))


def _guards_copy(function: ast.AST) -> bool:
    """Whether the function copies to the host without waiting: only the synchronisation makes that right."""
    for node in walk_scope(function):
        if isinstance(node, ast.Call) and any(keyword.arg == "non_blocking" for keyword in node.keywords):
            targets = [arg.value for arg in find(node, ast.Constant) if isinstance(arg.value, str)]
            if last_name(node.func) == "copy_" or any(target.startswith("cpu") for target in targets):
                return True
            if last_name(node.func) == "cpu":
                return True
    return False


def _timers(view: Scene, function: ast.AST) -> tuple[Related, ...]:
    """The first clock that the function reads: what it tells changes."""
    file = view.here.outline
    for node in walk_scope(function):
        if isinstance(node, ast.Call) and last_name(node.func) in _TIMERS:
            place = file.location(file.statement(node), view.case.location)
            return (Related("measures launching alone without it; torch.cuda.Event measures the device", place),)
    return ()


def _take_out(patch: Patch, statement: ast.stmt) -> None:
    """Delete a statement, be it one of several on its line or the only one of its block."""
    file = patch.outline
    block = file.block(statement)
    index = block.index(statement)
    start, end = file.span(statement)
    after = block[index + 1] if index + 1 < len(block) else None
    before = block[index - 1] if index else None
    if after is not None and after.lineno == statement.end_lineno:
        patch.replace_span(start, file.span(after)[0], "")
    elif before is not None and before.end_lineno == statement.lineno:
        patch.replace_span(file.span(before)[1], end, "")
    elif len(block) == 1:
        patch.replace_span(start, end, "pass")
    else:
        patch.delete([statement])


def _blocking(view: Scene) -> Confirmation | None:
    """Where the program itself sets CUDA_LAUNCH_BLOCKING."""
    workspace = view.case.workspace
    for path in workspace.paths():
        file = outline(workspace.file(path)) if _BLOCKING in (workspace.text(path) or "") else None
        for statement in file.statements if file is not None else ():
            assert file is not None
            if isinstance(statement, ast.Assign) and _BLOCKING in file.segment(statement) and _is_on(statement.value):
                patch = Patch(file)
                _take_out(patch, statement)
                fix = Fix(_SLUG, f"Leave {_BLOCKING} unset", Safety.SAFE, patch.edits())
                return Confirmation(file.location(statement, view.case.location), (fix,))
    return None


def _is_on(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and str(value.value) == "1"


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, ("synchronize(", _BLOCKING)), required=True)
