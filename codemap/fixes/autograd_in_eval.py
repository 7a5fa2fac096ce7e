"""A forward pass whose graph nothing uses: `torch.no_grad()` round it."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from ...analyzer.findings import Finding, Fix, Location, Safety
from ..workspace import Workspace
from .base import Case, Confirmation, Cure, DeviceFacts, Fixer
from .bindings import FUNCTIONS
from .blocks import wrap_in_with
from .edits import Patch
from .gradients import is_off, is_only_detached, never_differentiates, returns_numbers
from .imports import name_for
from .outline import Outline, find, header, last_name, outline
from .resolve import Resolver, Value
from .scene import Frame, Scene, scene, searcher

_SLUG = "autograd-in-eval"
_TITLE = "Run it without recording a graph (no_grad)"
_EVALUATES = re.compile(
    r"eval|valid|test|infer|predict|sample|generat|embed|extract|score|demo|benchmark", re.IGNORECASE
)
_WORDS = ("model(", "net(", "encoder(", "decoder(", "generator(", "discriminator(", "backbone(", "teacher(", "student(")
_VERBS = (
    "get|set|build|create|make|load|save|setup|init|check|export|unwrap|convert|parse|wrap|register|compile|print|"
    "fuse|quantize|prepare|freeze|replace|update|reset|summarize|trace|script|prune|copy|clone|download|log|show"
)
_MODEL = re.compile(
    rf"(?!({_VERBS})_)(\w+_)?(model|net|network|encoder|decoder|generator|discriminator|backbone|teacher|student)"
)
"""What a variable that holds a model is called."""
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return, ast.AugAssign)


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None or any(is_off(frame.outline, one) for frame in view.frames for one in frame.statements[:1]):
        return None
    frame = _outside_modules(view)
    if frame is None:
        return Confirmation(case.location, (), (), "a part of a model is run in vain: its output reaches no loss")
    file = frame.outline
    statement = next((one for one in frame.statements if find(one, ast.Call)), None)
    if statement is None:
        return None
    place = file.location(statement, case.location if frame is view.here else frame.place)
    is_inference = never_differentiates(case.workspace)
    fix = _of_function(file, statement, is_inference) or _of_statement(file, statement, is_inference)
    if fix is None:
        return Confirmation(place, (), (), "the pass is part of a larger statement")
    return Confirmation(place, (fix,))


def _outside_modules(view: Scene) -> Frame | None:
    """The innermost frame that is no module's own `forward`."""
    for frame in view.frames:
        if frame.statements and not _is_forward(frame.outline, frame.statements[0]):
            return frame
    return None


def _is_forward(file: Outline, statement: ast.stmt) -> bool:
    return getattr(file.function(statement), "name", "") in ("forward", "__call__")


def _of_function(file: Outline, statement: ast.stmt, is_inference: bool) -> Fix | None:
    """`@torch.no_grad()` over a function that evaluates."""
    function = file.function(statement)
    if not isinstance(function, FUNCTIONS) or any(
        last_name(call.func) in ("backward", "step", "zero_grad") for call in find(function, ast.Call)
    ):
        return None
    sets_eval = any(last_name(call.func) == "eval" for call in find(function, ast.Call))
    if not sets_eval and not _EVALUATES.search(function.name):
        return None
    patch = Patch(file)
    line = f"{file.indentation(function)}@{name_for(patch, 'torch.no_grad')}()"
    # Directly over the `def`: what else decorates it (`@staticmethod`) takes what it gives.
    patch.insert(file.line_starts[function.lineno - 1], line + file.newline)
    is_safe = is_inference or returns_numbers(file, function)
    return Fix(_SLUG, _TITLE, Safety.SAFE if is_safe else Safety.UNSAFE, patch.edits())


def _of_statement(file: Outline, statement: ast.stmt, is_inference: bool) -> Fix | None:
    """`with torch.no_grad():` round one statement."""
    if not isinstance(statement, _SIMPLE) or any(
        last_name(call.func) in ("backward", "step") for call in find(statement, ast.Call)
    ):
        return None
    patch = Patch(file)
    wrap_in_with(patch, [statement], f"{name_for(patch, 'torch.no_grad')}()")
    is_safe = is_inference or is_only_detached(file, statement)
    return Fix(_SLUG, _TITLE, Safety.SAFE if is_safe else Safety.UNSAFE, patch.edits())


def _search(finding: Finding, workspace: Workspace, device: DeviceFacts) -> Sequence[Confirmation]:
    """Statements that call a model, by its name, in code that evaluates or where no gradient can be missed: without a
    stack nothing else tells them from those of a training step."""
    answers = searcher(_confirm, _WORDS)(finding, workspace, device)
    return [
        answer
        for answer in answers
        if _runs_model(workspace, answer.location)
        and any(fix.safety is Safety.SAFE or _EVALUATES.search(answer.location.qualname) for fix in answer.fixes)
    ]


def _runs_model(workspace: Workspace, place: Location) -> bool:
    file = outline(workspace.file(place.path))
    if file is None:
        return False
    calls = [
        call for statement in file.statements_at(place) for part in header(statement) for call in find(part, ast.Call)
    ]
    resolver = Resolver(workspace)
    return any(
        _MODEL.fullmatch(last_name(call.func)) and resolver.definition(Value(file, call.func)) is None for call in calls
    )


FIXER = Fixer(_SLUG, _confirm, _search, cure=Cure(re.compile(r"\bno_grad\b|\binference_mode\b")))
