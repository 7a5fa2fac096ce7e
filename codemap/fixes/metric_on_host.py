"""A metric worked out on the host in every step: one `bincount`, or an update now and the value at the end."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Cure, Fixer
from .bindings import FUNCTIONS
from .confusion import class_loops, counted, library_matrix
from .edits import Patch
from .outline import Outline, find, last_name
from .resolve import Value
from .scene import Frame, Scene, fixable, scene, searcher

_SLUG = "metric-on-host"
_METRIC = re.compile(
    r"metric|(^|_|\b)(m?iou|cm|acc|f1|dice|auc|map|hist|jaccard|kappa)(_|\b|s\b)|IoU|confusion|accura|precision|recall"
    r"|mAP|psnr|ssim|evaluat",
)
_HOOKS = {
    "validation_step": "on_validation_epoch_end",
    "test_step": "on_test_epoch_end",
    "training_step": "on_train_epoch_end",
}
_LIBRARIES = ("torchmetrics.", "torcheval.")


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    for frame in view.frames:
        if (found := _in_frame(view, frame)) is not None:
            return found
    if _is_mended(view.here) or not any(_reads_as_metric(frame) for frame in view.frames[:2]):
        return None
    return Confirmation(case.location, message="count on the device with torch.bincount, or update every few steps")


def _in_frame(view: Scene, frame: Frame) -> Confirmation | None:
    """The fault and its fix in one frame's function."""
    file, like = frame.outline, view.case.location
    for statement in frame.statements:
        for loops in class_loops(file, _function(file, statement)):
            fix = counted(loops, _SLUG)
            return Confirmation(file.location(loops.outer, like), (fix,) if fix else ())
    for call in frame.calls():
        place = file.location(file.statement(call), like)
        if (fix := library_matrix(file, call, _SLUG)) is not None:
            return Confirmation(place, (fix,))
        if (fix := _updated(view, file, call) or _moved_to_end(file, call)) is not None:
            return Confirmation(place, (fix,))
    return None


def _function(file: Outline, statement: ast.stmt) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Module:
    return statement if isinstance(statement, FUNCTIONS) else file.function(statement)


def _is_mended(frame: Frame) -> bool:
    """Whether the function counts by `bincount` already, or the statement only updates a metric."""
    file = frame.outline
    functions = {_function(file, statement) for statement in frame.statements}
    counts = any(call in file.calls_in(function) for function in functions for call in file.calls("bincount"))
    return counts or any(last_name(call.func) == "update" for call in frame.calls())


def _reads_as_metric(frame: Frame) -> bool:
    """Whether a function's name, its class's or its text speaks of a metric."""
    file = frame.outline
    for statement in frame.statements:
        function = _function(file, statement)
        if isinstance(function, ast.Module):
            words = {last_name(node) for node in find(statement, ast.expr)}
        else:
            owner = file.enclosing_class(function)
            words = {function.name, owner.name if owner is not None else ""}
            words |= {last_name(node) for node in find(function, ast.expr)}
        if any(_METRIC.search(word) for word in words if word):
            return True
    return False


def _updated(view: Scene, file: Outline, call: ast.Call) -> Fix | None:
    """`metric(preds, target)`, its value not used, of a metric that is computed elsewhere: only update it."""
    statement = file.statement(call)
    if not (isinstance(statement, ast.Expr) and statement.value is call):
        return None
    if not isinstance(call.func, ast.Name | ast.Attribute) or not _is_computed(file, call.func):
        return None
    patch = Patch(file)
    end = file.span(call.func)[1]
    patch.insert(end, ".update")
    made = view.resolver.find(Value(file, call.func), lambda one: isinstance(one.node, ast.Call))
    names = [one.outline.dotted(one.node.func) for one in made if isinstance(one.node, ast.Call)]
    is_known = bool(names) and all(name.startswith(_LIBRARIES) for name in names)
    safety = Safety.SAFE if is_known else Safety.UNSAFE
    return Fix(_SLUG, "Update the metric here, and compute it at the end as before", safety, patch.edits())


def _is_computed(file: Outline, metric: ast.expr) -> bool:
    text = file.segment(metric)
    return any(
        isinstance(one.func, ast.Attribute) and file.segment(one.func.value) == text for one in file.calls("compute")
    )


def _moved_to_end(file: Outline, call: ast.Call) -> Fix | None:
    """`m = self.metric(...)` and `self.log(..., m[...])` in a LightningModule's step: log once, at the epoch's end."""
    step = file.function(call)
    statement = file.statement(call)
    if not isinstance(step, ast.FunctionDef) or step.name not in _HOOKS or not isinstance(statement, ast.Assign):
        return None
    owner, target = file.enclosing_class(step), statement.targets[0]
    if owner is None or statement.value is not call or not isinstance(target, ast.Name) or len(statement.targets) > 1:
        return None
    if not (isinstance(call.func, ast.Attribute) and last_name(call.func.value) == "self" and statement in step.body):
        return None
    hook = _HOOKS[step.name]
    logs = _logs_of(file, step, target.id, statement)
    if logs is None or any(isinstance(one, FUNCTIONS) and one.name == hook for one in owner.body):
        return None
    patch = Patch(file)
    metric = file.segment(call.func)
    patch.replace_span(file.span(statement)[0], file.span(call.func)[1], f"{metric}.update")
    patch.delete(logs)
    outer, inner = file.indentation(step), file.indentation(step.body[0])
    lines = [f"{outer}def {hook}(self):", f"{inner}{target.id} = {metric}.compute()"]
    lines += [inner + file.segment(one) for one in logs]
    lines += [f"{inner}{metric}.reset()"]
    last = step.end_lineno or step.lineno
    starts = [*file.line_starts, len(file.text)]
    lead = "" if file.text[: starts[last]].endswith("\n") else file.newline
    patch.insert(starts[last], lead + file.newline + file.newline.join(lines) + file.newline)
    title = "Update the metric in each step, compute and log it once an epoch"
    return Fix(_SLUG, title, Safety.UNSAFE, patch.edits())


def _logs_of(file: Outline, step: ast.FunctionDef, name: str, made: ast.stmt) -> list[ast.stmt] | None:
    """The `self.log` statements that are all that reads a name; None if something else does."""
    logs: list[ast.stmt] = []
    for node in find(step, ast.Name):
        if node.id != name or file.statement(node) is made:
            continue
        statement = file.statement(node)
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr="log" | "log_dict"))):
                known = {one.id for one in find(statement, ast.Name)} <= {"self", name}
                if not known or statement not in step.body:
                    return None
                if statement not in logs:
                    logs.append(statement)
            case _:
                return None
    return logs or None


FIXER = Fixer(
    _SLUG,
    _confirm,
    fixable(searcher(_confirm, ("confusion_matrix", "metric", "np.sum("))),
    required=True,
    cure=Cure(re.compile(r"bincount\(|\.update\(")),
)
