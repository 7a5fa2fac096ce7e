"""Finding the optimizer that a statement steps, and choosing its implementation."""

from __future__ import annotations

import ast

from ...analyzer.findings import TextEdit
from .calls import edit_call
from .edits import Patch
from .models import assigned_target
from .outline import last_name
from .resolve import Resolver, Value, Wanted
from .scene import Scene
from .settings import argument, constants

_BUILDERS = ("build", "create", "get", "make", "configure")


def optimizers(view: Scene, wanted: Wanted) -> list[Value]:
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


def is_optimizer(value: Value) -> bool:
    """Whether an expression makes one of torch's optimizers."""
    if not isinstance(value.node, ast.Call):
        return False
    name = value.outline.dotted(value.node.func)
    return name.startswith("torch.optim.") and "lr_scheduler" not in name and last_name(value.node.func)[:1].isupper()


def is_built_optimizer(value: Value) -> bool:
    """A builder's call whose result is called an optimizer: a table or a registry knows the class."""
    if not isinstance(value.node, ast.Call):
        return False
    target = assigned_target(value.outline, value.node)
    is_named = target is not None and ("optim" in last_name(target).lower() or last_name(target) == "opt")
    return is_named and last_name(value.node.func).startswith(_BUILDERS)


def asks_for(resolver: Resolver, optimizer: Value, name: str) -> bool:
    """Whether the constructor asks for an implementation (`fused`, `foreach`), or may by an expression.

    A setting whose every known value is false asks for none.
    """
    held = argument(resolver, optimizer, name)
    if held.is_unknown or held.value is None:
        return False
    given = [one.node for one in constants(resolver, held.value)]
    return not given or any(isinstance(node, ast.Constant) and node.value not in (False, None) for node in given)


def choosing(resolver: Resolver, optimizer: Value, chosen: str) -> tuple[TextEdit, ...]:
    """The edit that makes an optimizer use its `fused` or `foreach` implementation."""
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
        text = edit_call(file.segment(optimizer.node), {chosen: "True"}, drop=drop, column=column)
        patch.replace(optimizer.node, text)
    return patch.edits()
