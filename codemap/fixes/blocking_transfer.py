"""A copy to the device that the host waits for: `non_blocking=True`."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Cure, Fixer
from .calls import edit_call
from .edits import Patch
from .loaders import feeding, loader_argument
from .outline import last_name
from .resolve import Resolver, Value
from .scene import scene, searcher
from .settings import constants
from .transfers import is_non_blocking, moved_tensors

_SLUG = "blocking-transfer"


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None or case.device.is_cpu:
        return None
    file = view.here.outline
    blocking = [
        call
        for call in moved_tensors(view.here)
        if not is_non_blocking(call) and not _is_module(view.resolver, Value(file, call))
    ]
    if not blocking:
        return None
    patch = Patch(file)
    for call in blocking:
        assert isinstance(call.func, ast.Attribute)
        # Only `to(...)` is edited, not what it is called on: `a.to(d).b.to(d)` holds one call inside the other.
        start, end = file.span(call.func)[1] - len(call.func.attr), file.span(call)[1]
        patch.replace_span(start, end, edit_call(file.text[start:end], {"non_blocking": "True"}))
    is_pinned = all(_is_pinned(view.resolver, Value(file, call)) for call in blocking)
    safety = Safety.SAFE if is_pinned else Safety.UNSAFE
    fix = Fix(_SLUG, "Copy without waiting (non_blocking=True)", safety, patch.edits())
    message = "" if is_pinned else "non_blocking helps only from pinned memory (pin_memory=True in the loader)"
    return Confirmation(file.location(file.statement(blocking[0]), case.location), (fix,), (), message)


def _is_pinned(resolver: Resolver, move: Value) -> bool:
    """Whether all that the tensor may come from is pinned."""
    assert isinstance(move.node, ast.Call) and isinstance(move.node.func, ast.Attribute)
    source = Value(move.outline, move.node.func.value)
    if resolver.find(source, _pins):
        return True
    loaders = feeding(resolver, source)
    return bool(loaders) and all(_loader_pins(resolver, loader) for loader in loaders)


def _pins(value: Value) -> bool:
    return (
        isinstance(value.node, ast.Call)
        and (
            last_name(value.node.func) == "pin_memory"
            or any(
                keyword.arg == "pin_memory" and getattr(keyword.value, "value", False)
                for keyword in value.node.keywords
            )
        )
        and not last_name(value.node.func).endswith("DataLoader")
    )


def _loader_pins(resolver: Resolver, loader: Value) -> bool:
    held = loader_argument(resolver, loader, "pin_memory")
    if held.value is None:
        return False
    literals = [one.node.value for one in constants(resolver, held.value) if isinstance(one.node, ast.Constant)]
    return bool(literals) and all(value is True for value in literals)


def _is_module(resolver: Resolver, move: Value) -> bool:
    """A model is moved once, and `Module.to` is no copy of a batch."""
    assert isinstance(move.node, ast.Call) and isinstance(move.node.func, ast.Attribute)
    root = move.node.func.value
    while isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute):
        root = root.func.value
    if isinstance(root, ast.Call) and last_name(root.func)[:1].isupper():  # `Net().eval().cuda()`
        return True
    name = last_name(move.node.func.value).lower()
    if name in ("model", "net", "network", "criterion", "module"):
        return True
    return resolver.instance_class(Value(move.outline, move.node.func.value)) is not None


FIXER = Fixer(
    _SLUG, _confirm, searcher(_confirm, (".to(", ".cuda(")), cure=Cure(re.compile(r"\bnon_blocking\s*=\s*True"))
)
