"""A recording that leaves out what findings need: switch it on in the `profile(...)` call."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ...analyzer.findings import Finding, Fix, Location, Safety
from ..workspace import Workspace
from .base import Case, Confirmation, DeviceFacts, Fixer
from .calls import edit_call
from .edits import Patch
from .outline import Outline, outline
from .resolve import Resolver, Value
from .scene import scene
from .settings import argument

_SLUG = "trace-lacks-evidence"
_FLAGS = ("with_stack", "record_shapes")


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    for call in view.here.calls():
        if _is_profile(view.here.outline, call):
            return _confirmation(view.resolver, Value(view.here.outline, call), case.finding, case.location)
    return None


def _search(finding: Finding, workspace: Workspace, device: DeviceFacts) -> Sequence[Confirmation]:
    """All `profile(...)` calls of the workspace that lack one of the flags asked for."""
    resolver = Resolver(workspace)
    found: list[Confirmation] = []
    for path in workspace.calling("profile"):
        if (file := outline(workspace.file(path))) is None:
            continue
        for call in file.calls("profile"):
            if _is_profile(file, call):
                answer = _confirmation(resolver, Value(file, call), finding, None)
                found.extend([answer] if answer is not None else [])
    return found


def _is_profile(file: Outline, call: ast.Call) -> bool:
    name = file.dotted(call.func)
    return name.startswith("torch.") and name.endswith("profiler.profile")


def _confirmation(resolver: Resolver, call: Value, finding: Finding, like: Location | None) -> Confirmation | None:
    assert isinstance(call.node, ast.Call)
    file = call.outline
    held = {flag: argument(resolver, call, flag) for flag in _asked_for(finding)}
    missing = [flag for flag, one in held.items() if not one.is_unknown and (one.value is None or _is_false(one.value))]
    if not missing:
        return None
    patch = Patch(file)
    added = {}
    for flag in missing:
        value = held[flag].value
        in_call = value is None or any(keyword.value is value.node for keyword in call.node.keywords)
        if in_call:
            added[flag] = "True"
        elif value is not None and value.outline is file:
            patch.replace(value.node, "True")
    if added:
        column = file.position(file.span(call.node)[0])[1] - 1
        patch.replace(call.node, edit_call(file.segment(call.node), added, column=column))
    title = f"Record more: {', '.join(f'{flag}=True' for flag in missing)}"
    place = file.location(call.node, like)
    return Confirmation(place, (Fix(_SLUG, title, Safety.SAFE, patch.edits()),))


def _asked_for(finding: Finding) -> list[str]:
    """The flags that the finding names; both if it names none."""
    said = [finding.title, finding.message, *(f"{one.id} {one.name} {one.value}" for one in finding.evidence)]
    return [flag for flag in _FLAGS if any(flag in text for text in said)] or list(_FLAGS)


def _is_false(value: Value) -> bool:
    return isinstance(value.node, ast.Constant) and not value.node.value


FIXER = Fixer(_SLUG, _confirm, _search)
