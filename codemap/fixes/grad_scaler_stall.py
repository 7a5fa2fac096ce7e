"""A gradient scaler that reads on the host whether gradients overflowed: let the fused optimizer look, or use bf16."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Cure, Fixer
from .calls import edit_call
from .edits import Patch
from .imports import name_for
from .optimizers import asks_for, choosing, is_built_optimizer, is_optimizer, optimizers
from .outline import Outline, find, last_name
from .resolve import Value
from .scene import Scene, scene, searcher
from .settings import argument
from .versions import is_older

_SLUG = "grad-scaler-stall"
_FUSED_SINCE = {"Adam": (2, 0), "AdamW": (2, 0), "SGD": (2, 3)}
"""Optimizers whose fused implementation takes the scaler's flag on the device."""
_READS = ("get_scale", "state_dict")


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None or case.device.is_cpu:
        return None
    reads = [call for call in view.here.calls() if last_name(call.func) in _READS and _is_scaler(view, call)]
    if reads:
        return Confirmation(case.location, message="the scale is read on the host in every step: log it rarely")
    step = _scaled_step(view)
    if step is None or _is_disabled(view, step):
        return None
    made = optimizers(view, is_optimizer)
    unfused = [one for one in made if not asks_for(view.resolver, one, "fused")]
    if made and not unfused:
        return None
    optimizer = next(iter(unfused or optimizers(view, is_built_optimizer)), None)
    if optimizer is not None and (answer := _fused(view, optimizer)) is not None:
        return answer
    return _bfloat16(view, step)


def _scaled_step(view: Scene) -> ast.Call | None:
    """The `scaler.step(optimizer)` at the place."""
    for call in view.here.calls():
        if last_name(call.func) == "step" and call.args and _is_scaler(view, call):
            return call
    return None


def _is_disabled(view: Scene, step: ast.Call) -> bool:
    assert isinstance(step.func, ast.Attribute)
    for scaler in view.resolver.find(Value(view.here.outline, step.func.value), _makes_scaler):
        held = argument(view.resolver, scaler, "enabled").value
        if held is not None and isinstance(held.node, ast.Constant) and held.node.value is False:
            return True
    return False


def _is_scaler(view: Scene, call: ast.Call) -> bool:
    """Whether a call is of a gradient scaler's method."""
    if not isinstance(call.func, ast.Attribute):
        return False
    receiver = Value(view.here.outline, call.func.value)
    return "scaler" in last_name(call.func.value).lower() or bool(view.resolver.find(receiver, _makes_scaler))


def _makes_scaler(value: Value) -> bool:
    return isinstance(value.node, ast.Call) and last_name(value.node.func) == "GradScaler"


def _fused(view: Scene, optimizer: Value) -> Confirmation | None:
    """The optimizer with `fused=True`; None where it has no such implementation."""
    assert isinstance(optimizer.node, ast.Call)
    since = _FUSED_SINCE.get(last_name(optimizer.node.func))
    is_own = is_optimizer(optimizer)
    if is_own and (since is None or is_older(view.case.device.torch_version, since)):
        return None
    place = optimizer.outline.location(optimizer.outline.statement(optimizer.node), view.case.location)
    related = () if place.line == view.case.location.line else (Related("the step", view.case.location),)
    if not is_own:
        return Confirmation(place, (), related, "its class is looked up in a table: pass fused=True where it is made")
    if argument(view.resolver, optimizer, "differentiable").value is not None:
        return Confirmation(place, (), related, "a differentiable optimizer has no fused implementation")
    edits = choosing(view.resolver, optimizer, "fused")
    return Confirmation(
        place, (Fix(_SLUG, "Let the optimizer check on the device (fused=True)", Safety.SAFE, edits),), related
    )


def _bfloat16(view: Scene, step: ast.Call) -> Confirmation:
    """Autocast in bfloat16, whose range needs no scaler, where one file holds both; advice where it does not."""
    file, case = view.here.outline, view.case
    place = file.location(file.statement(step), case.location)
    advice = Confirmation(place, message="bfloat16 needs no scaler, and a fused optimizer checks on the device")
    assert isinstance(step.func, ast.Attribute)
    scalers = view.resolver.find(Value(file, step.func.value), _makes_scaler)
    casts = [call for call in find(file.tree, ast.Call) if last_name(call.func) == "autocast"]
    if not case.device.has_bf16 or len(scalers) != 1 or scalers[0].outline is not file or not casts:
        return advice
    if any(_sets_other_type(file, call) for call in casts):
        return advice
    patch = Patch(file)
    for call, arguments in [
        (scalers[0].node, {"enabled": "False"}),
        *((call, {"dtype": name_for(patch, "torch.bfloat16")}) for call in casts),
    ]:
        column = file.position(file.span(call)[0])[1] - 1
        patch.replace(call, edit_call(file.segment(call), arguments, column=column))
    return Confirmation(place, (Fix(_SLUG, "Use bfloat16 without a scaler", Safety.UNSAFE, patch.edits()),))


def _sets_other_type(file: Outline, call: ast.Call) -> bool:
    """Whether an autocast names its type by position or by an expression, or is bfloat16 already."""
    given = next((keyword.value for keyword in call.keywords if keyword.arg == "dtype"), None)
    if any(keyword.arg is None for keyword in call.keywords) or len(call.args) > 1:
        return True
    return given is not None and file.dotted(given) not in ("torch.float16", "torch.half")


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, (".step(", ".get_scale(")),
    cure=Cure(re.compile(r"\bfused\s*=\s*True|GradScaler\([^)]*enabled\s*=\s*False"), is_elsewhere=True),
)
