"""An fp32 step on tensor cores: autocast round the forward pass and the loss."""

from __future__ import annotations

import ast

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, DeviceFacts, Fixer
from .blocks import wrap_in_with
from .edits import Patch
from .imports import name_for
from .models import ModelCall, model_call
from .outline import Outline, find, last_name
from .scene import scene, searcher
from .versions import is_older

_SLUG = "fp32-without-autocast"


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    model = model_call(view) if view is not None and not case.device.is_cpu else None
    if view is None or model is None or any(_uses_autocast(frame.outline, frame.statements) for frame in view.frames):
        return None
    file, statement = model.outline, model.outline.statement(model.call)
    place = file.location(statement, case.location)
    if is_older(case.device.torch_version, (1, 10)):
        return Confirmation(place, message="torch.autocast needs PyTorch 1.10")
    wrapped = _forward_and_loss(file, statement)
    is_training = any(_has_call(later, "backward") for later in file.block(statement))
    if not wrapped:
        return Confirmation(place, message="the forward pass and backward() share one statement")
    if is_training and not case.device.has_bf16:
        return Confirmation(place, message="float16 needs a GradScaler round backward() and step()")
    return Confirmation(place, (_fix(model, wrapped, case.device),))


def _fix(model: ModelCall, wrapped: list[ast.stmt], device: DeviceFacts) -> Fix:
    patch = Patch(model.outline)
    autocast = name_for(patch, "torch.autocast")
    kind = "bfloat16" if device.has_bf16 else "float16"
    dtype = name_for(patch, f"torch.{kind}")
    wrap_in_with(patch, wrapped, f'{autocast}("cuda", dtype={dtype})')
    return Fix(_SLUG, f"Run the forward pass under autocast ({kind})", Safety.UNSAFE, patch.edits())


def _forward_and_loss(file: Outline, statement: ast.stmt) -> list[ast.stmt]:
    """The statements from the forward call up to `backward()` in the same block; the forward call's alone without
    one. Empty where one statement does both."""
    if _has_call(statement, "backward"):
        return []
    block = file.block(statement)
    start = block.index(statement)
    for end in range(start + 1, len(block)):
        if _has_call(block[end], "backward"):
            while _has_call(block[end - 1], "zero_grad"):
                end -= 1
            return block[start:end]
    return [statement]


def _has_call(node: ast.AST, name: str) -> bool:
    return any(last_name(call.func) == name for call in find(node, ast.Call))


def _uses_autocast(file: Outline, statements: tuple[ast.stmt, ...]) -> bool:
    """Whether a frame runs under autocast: a `with` or decorator around it, or any in the same function."""
    functions = {file.function(statement) for statement in statements}
    return any(
        "autocast" in last_name(node)
        for function in functions
        if not isinstance(function, ast.Module)
        for node in find(function, ast.expr)
    ) or any(
        "autocast" in file.segment(item.context_expr)
        for statement in statements
        for above in file.ancestors(statement)
        if isinstance(above, ast.With)
        for item in above.items
    )


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, ("model(", "net(", "backbone(", "encoder(", "network(")))
