"""An optimizer that updates one parameter at a time: the foreach or fused implementation."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Cure, DeviceFacts, Fixer
from .calls import edit_call
from .edits import Patch
from .models import assigned_target
from .outline import last_name
from .resolve import Resolver, Value, Wanted
from .scene import Scene, scene, searcher
from .settings import argument
from .versions import is_older

_SLUG = "single-tensor-optimizer"
_FOREACH = frozenset(
    ["ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"]
)
_BUILDERS = ("build", "create", "get", "make", "configure")
_FUSED_ON_CPU = frozenset(["Adagrad", "Adam", "AdamW", "SGD"])


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    made = _optimizers(view, _is_optimizer)
    if not made:
        built = _optimizers(view, _is_built_optimizer)
        return _built(view, built[0]) if built else None
    for optimizer in made:
        if not _is_multi(view.resolver, optimizer):
            return _confirmation(view, optimizer)
    return None


def _optimizers(view: Scene, wanted: Wanted) -> list[Value]:
    """Constructors of the optimizers whose `step` is called at the place or above it."""
    for frame in view.frames:
        own = [Value(frame.outline, call) for call in frame.calls() if wanted(Value(frame.outline, call))]
        if own:
            return own
        found: list[Value] = []
        for call in frame.calls():
            if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("step", "backward"):
                continue
            receivers = [call.func.value, *call.args]  # `scaler.step(optimizer)`
            for receiver in receivers:
                found.extend(view.resolver.find(Value(frame.outline, receiver), wanted))
        if found:
            return found
    return []


def _is_optimizer(value: Value) -> bool:
    if not isinstance(value.node, ast.Call):
        return False
    name = value.outline.dotted(value.node.func)
    return name.startswith("torch.optim.") and "lr_scheduler" not in name and last_name(value.node.func)[:1].isupper()


def _is_built_optimizer(value: Value) -> bool:
    """A builder's call whose result is called an optimizer: a table or a registry knows the class."""
    if not isinstance(value.node, ast.Call):
        return False
    target = assigned_target(value.outline, value.node)
    is_named = target is not None and ("optim" in last_name(target).lower() or last_name(target) == "opt")
    return is_named and last_name(value.node.func).startswith(_BUILDERS)


def _built(view: Scene, optimizer: Value) -> Confirmation:
    """An optimizer whose class the source leaves to a table: where it is asked for, without a fix."""
    place = optimizer.outline.location(optimizer.node, view.case.location)
    related = () if place.line == view.case.location.line else (Related("the step", view.case.location),)
    return Confirmation(place, (), related, "its class is looked up in a table: pass fused=True where it is configured")


def _is_multi(resolver: Resolver, optimizer: Value) -> bool:
    """Whether the constructor asks for an implementation that takes many tensors at once (or may, out of sight)."""
    for name in ("foreach", "fused"):
        held = argument(resolver, optimizer, name)
        if held.is_unknown:
            continue
        if held.value is not None and not (
            isinstance(held.value.node, ast.Constant) and held.value.node.value in (False, None)
        ):
            return True
    return False


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
    return Confirmation(place, (_fix(view.resolver, optimizer, chosen),), related)


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


def _fix(resolver: Resolver, optimizer: Value, chosen: str) -> Fix:
    patch = Patch(optimizer.outline)
    file = optimizer.outline
    assert isinstance(optimizer.node, ast.Call)
    other = "foreach" if chosen == "fused" else "fused"
    named = {keyword.arg for keyword in optimizer.node.keywords}
    drop = [other] if other in named else []
    held = argument(resolver, optimizer, chosen).value
    if held is not None and chosen not in named:
        patch.replace(held.node, "True")  # it stands in a dict that is unpacked into the call
    else:
        column = file.position(file.span(optimizer.node)[0])[1] - 1
        patch.replace(
            optimizer.node, edit_call(file.segment(optimizer.node), {chosen: "True"}, drop=drop, column=column)
        )
    return Fix(_SLUG, f"Update all parameters together ({chosen}=True)", Safety.SAFE, patch.edits())


_WORDS = ("optim.", "optimizer =", "opt =", "SGD(", "Adam(", "AdamW(", "RMSprop(", "Adagrad(")
FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, _WORDS),
    cure=Cure(re.compile(r"\b(fused|foreach)\s*=\s*True"), is_elsewhere=True),
)
