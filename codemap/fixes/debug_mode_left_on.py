"""Anomaly detection, deterministic fills and gradient checks: switch off what was left on."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ...analyzer.findings import Finding, Fix, Location, Safety
from ..workspace import Workspace
from .base import Case, Confirmation, DeviceFacts, Fixer
from .edits import Patch
from .imports import name_for
from .resolve import Resolver, Value
from .settings import argument, constants

_SLUG = "debug-mode-left-on"


def _confirm(case: Case) -> Confirmation | None:
    resolver = Resolver(case.workspace, case.callers)
    return next(iter(_found(case.finding, resolver, case.location)), None)


def _search(finding: Finding, workspace: Workspace, device: DeviceFacts) -> list[Confirmation]:
    return list(_found(finding, Resolver(workspace), None))


def _found(finding: Finding, resolver: Resolver, like: Location | None) -> Iterator[Confirmation]:
    """Where the mode that the trace shows (any of them, if it does not say) is switched on."""
    shown = {evidence.id for evidence in finding.evidence} & set(_MODES)
    for identity, look in _MODES.items():
        if not shown or identity in shown:
            yield from look(resolver, like)


def _anomaly(resolver: Resolver, like: Location | None) -> Iterator[Confirmation]:
    for name in ("set_detect_anomaly", "detect_anomaly"):
        for call in resolver.calls_of(name):
            if _is_autograd(call) and _is_on(resolver, call, "mode", default=name == "detect_anomaly"):
                yield _anomaly_off(call, name, like)
    for call in resolver.calls_of("Trainer"):
        assert isinstance(call.node, ast.Call)
        given = [keyword for keyword in call.node.keywords if keyword.arg == "detect_anomaly"]
        if given and isinstance(given[0].value, ast.Constant) and given[0].value.value is True:
            patch = Patch(call.outline)
            patch.replace(given[0].value, "False")
            yield _off(call, patch, "Switch anomaly detection off", like)


def _is_autograd(call: Value) -> bool:
    assert isinstance(call.node, ast.Call)
    dotted = call.outline.dotted(call.node.func)
    return dotted.startswith("torch.") or dotted.rpartition(".")[0].endswith("autograd")


def _is_on(resolver: Resolver, call: Value, name: str, *, default: bool) -> bool:
    """Whether a switch is set by a literal: what an option decides is off when nobody asks for it."""
    given = argument(resolver, call, name, 0)
    if given.value is None:
        return default and not given.is_unknown
    return any(
        isinstance(one.node, ast.Constant) and one.node.value is True for one in constants(resolver, given.value)
    )


def _anomaly_off(call: Value, name: str, like: Location | None) -> Confirmation:
    assert isinstance(call.node, ast.Call)
    patch = Patch(call.outline)
    owner = call.node.func
    if name == "set_detect_anomaly":
        switch = next((k.value for k in call.node.keywords if k.arg == "mode"), None) or call.node.args[0]
        patch.replace(switch, "False")
    elif isinstance(owner, ast.Attribute):
        patch.replace(call.node, f"{call.outline.segment(owner.value)}.set_detect_anomaly(False)")
    else:
        patch.replace(call.node, f"{name_for(patch, 'torch.autograd.set_detect_anomaly')}(False)")
    return _off(call, patch, "Switch anomaly detection off", like)


def _off(call: Value, patch: Patch, title: str, like: Location | None) -> Confirmation:
    place = call.outline.location(call.outline.statement(call.node), like)
    return Confirmation(place, (Fix(_SLUG, title, Safety.SAFE, patch.edits()),), (), "anomaly detection is on")


def _deterministic(resolver: Resolver, like: Location | None) -> Iterator[Confirmation]:
    for call in resolver.calls_of("use_deterministic_algorithms"):
        if not _is_on(resolver, call, "mode", default=False) or _fills_are_off(resolver):
            continue
        statement = call.outline.statement(call.node)
        patch = Patch(call.outline)
        flag = name_for(patch, "torch.utils.deterministic.fill_uninitialized_memory")
        patch.insert_line_after(statement, f"{flag} = False")
        fix = Fix(f"{_SLUG}/fill", "Leave new memory unfilled", Safety.UNSAFE, patch.edits())
        yield Confirmation(call.outline.location(statement, like), (fix,))


def _fills_are_off(resolver: Resolver) -> bool:
    texts = (resolver.workspace.text(path) for path in resolver.workspace.paths())
    return any(text is not None and "fill_uninitialized_memory" in text for text in texts)


def _gradcheck(resolver: Resolver, like: Location | None) -> Iterator[Confirmation]:
    for name in ("gradcheck", "gradgradcheck"):
        for call in resolver.calls_of(name):
            statement = call.outline.statement(call.node)
            test = statement.test if isinstance(statement, ast.Assert) else getattr(statement, "value", None)
            place = call.outline.location(statement, like)
            block = call.outline.block(statement)
            if test is call.node and isinstance(statement, ast.Assert | ast.Expr) and len(block) > 1:
                patch = Patch(call.outline)
                patch.delete([statement])
                yield Confirmation(place, (Fix(_SLUG, "Leave out the gradient check", Safety.SAFE, patch.edits()),))
            else:
                yield Confirmation(place, message="the result of the check is used")


_MODES: dict[str, Callable[[Resolver, Location | None], Iterator[Confirmation]]] = {
    "nan-checks": _anomaly,
    "fills": _deterministic,
    "gradchecks": _gradcheck,
}

FIXER = Fixer(_SLUG, _confirm, _search)
