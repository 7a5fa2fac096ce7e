"""An optimizer that updates one parameter at a time: the foreach or fused implementation."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Cure, DeviceFacts, Fixer
from .optimizers import asks_for, choosing, is_built_optimizer, is_optimizer, optimizers
from .outline import last_name
from .resolve import Value
from .scene import Scene, scene, searcher
from .settings import argument
from .versions import is_older

_SLUG = "single-tensor-optimizer"
_FOREACH = frozenset(
    ["ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"]
)
_FUSED_ON_CPU = frozenset(["Adagrad", "Adam", "AdamW", "SGD"])


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    made = optimizers(view, is_optimizer)
    if not made:
        built = optimizers(view, is_built_optimizer)
        return _built(view, built[0]) if built else None
    for optimizer in made:
        if not any(asks_for(view.resolver, optimizer, name) for name in ("foreach", "fused")):
            return _confirmation(view, optimizer)
    return None


def _built(view: Scene, optimizer: Value) -> Confirmation:
    """An optimizer whose class the source leaves to a table: where it is asked for, without a fix."""
    place = optimizer.outline.location(optimizer.node, view.case.location)
    related = () if place.line == view.case.location.line else (Related("the step", view.case.location),)
    return Confirmation(place, (), related, "its class is looked up in a table: pass fused=True where it is configured")


def _confirmation(view: Scene, optimizer: Value) -> Confirmation:
    file, device = optimizer.outline, view.case.device
    place = file.location(optimizer.node, view.case.location)
    related = ()
    if place.line != view.case.location.line:
        related = (Related("the step", view.case.location),)
    assert isinstance(optimizer.node, ast.Call)
    kind = last_name(optimizer.node.func)
    chosen, reason = _implementation(kind, device)
    groups = optimizer.node.args[0] if optimizer.node.args else None
    if isinstance(groups, ast.ListComp | ast.GeneratorExp) and isinstance(groups.elt, ast.Dict):
        return Confirmation(place, (), related, "each parameter is a group of its own, which no implementation joins")
    if argument(view.resolver, optimizer, "differentiable").value is not None or not chosen:
        return Confirmation(place, (), related, reason)
    title = f"Update all parameters together ({chosen}=True)"
    return Confirmation(place, (Fix(_SLUG, title, Safety.SAFE, choosing(view.resolver, optimizer, chosen)),), related)


def _implementation(kind: str, device: DeviceFacts) -> tuple[str, str]:
    """`fused` or `foreach`; "" and the reason where neither exists."""
    if device.is_cpu:
        # On a CPU foreach is a loop as well; the fused kernels came with 2.4 and 2.5.
        if kind in _FUSED_ON_CPU and not is_older(device.torch_version, (2, 5)):
            return "fused", ""
        return "", f"torch.optim.{kind} has no fused implementation for the CPU in this version"
    if kind not in _FOREACH:
        return "", f"torch.optim.{kind} has no foreach implementation"
    if is_older(device.torch_version, (1, 12)):
        return "", "foreach optimizers need PyTorch 1.12"
    return "foreach", ""


_WORDS = ("optim.", "optimizer =", "opt =", "SGD(", "Adam(", "AdamW(", "RMSprop(", "Adagrad(")
FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, _WORDS),
    cure=Cure(re.compile(r"\b(fused|foreach)\s*=\s*True"), is_elsewhere=True),
)
