"""A projection called again on the same input: its result kept in a name."""

from __future__ import annotations

import ast
import re
from collections import Counter

from ...analyzer.findings import Fix, Related, Safety
from .attention_parts import Refusal
from .base import Case, Confirmation, Fixer
from .edits import Patch
from .outline import Outline, find, last_name
from .projections import Projection, by_input, projections
from .scene import Scene, scene, searcher

_SLUG = "qkv-recomputed"


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    file = view.here.outline
    calls = _repeated(view)
    if calls is None:
        return None
    place = file.location(file.statement(calls[0].call), case.location)
    again = [file.location(file.statement(one.call), case.location) for one in calls[1:]]
    related = tuple(Related("computed again here", one) for one in dict.fromkeys(again) if one.line != place.line)
    try:
        return Confirmation(place, (_fix(file, calls),), related)
    except Refusal as reason:
        return Confirmation(place, (), related, str(reason))


def _repeated(view: Scene) -> list[Projection] | None:
    """The calls of one layer on one input that the place belongs to, two or more, in the order of the text."""
    file = view.here.outline
    statements = set(view.here.statements)
    for function in dict.fromkeys(file.function(statement) for statement in view.here.statements):
        for group in by_input(file, projections(file, function)):
            counts = Counter(one.name for one in group)
            for name in (name for name, count in counts.items() if count > 1):
                calls = [one for one in group if one.name == name]
                if any(file.statement(one.call) in statements for one in calls):
                    return calls
    return None


def _fix(file: Outline, calls: list[Projection]) -> Fix:
    first = file.statement(calls[0].call)
    if not file.indentation(first):
        raise Refusal("the first call shares its line with another statement")
    patch = Patch(file)
    name = _kept_name(file, calls)
    if name is not None:
        for one in calls[1:]:
            patch.replace(one.call, name)
    else:
        name = _new_name(file, calls)
        line = f"{name} = {file.segment(calls[0].call)}"
        patch.insert(file.span(first)[0], f"{line}{file.newline}{file.indentation(first)}")
        for one in calls:
            patch.replace(one.call, name)
    is_plain = calls[0].made is not None and not _changes_in_place(file, calls)
    safety = Safety.SAFE if is_plain else Safety.UNSAFE
    return Fix(_SLUG, f"Call {calls[0].name} once and keep its result", safety, patch.edits())


def _kept_name(file: Outline, calls: list[Projection]) -> str | None:
    """The name that the first statement gives the result already, if it holds it wherever the others stand."""
    first, last = file.statement(calls[0].call), file.statement(calls[-1].call)
    match first:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is calls[0].call:
            pass
        case _:
            return None
    rebound = [
        node
        for node in find(file.function(first), ast.Name)
        if node.id == name and isinstance(node.ctx, ast.Store) and first.lineno < node.lineno < last.lineno
    ]
    return None if rebound else name


def _new_name(file: Outline, calls: list[Projection]) -> str:
    taken = {node.id for node in find(file.function(calls[0].call), ast.Name)}
    taken |= {node.arg for node in find(file.function(calls[0].call), ast.arg)}
    short = re.sub(r"^(to|in|w)_|_(proj|projection|linear|layer)$", "", calls[0].name)
    for name in (short, calls[0].name, f"{calls[0].name}_out", "projected"):
        if name not in taken:
            return name
    raise Refusal("every name for the result is taken")


def _changes_in_place(file: Outline, calls: list[Projection]) -> bool:
    """Whether a name given in one of the statements is written into: the others would see it."""
    names: set[str] = set()
    for one in calls:
        statement = file.statement(one.call)
        names |= {node.id for node in find(statement, ast.Name) if isinstance(node.ctx, ast.Store)}
    function = file.function(calls[0].call)
    written = {last_name(node.target) for node in find(function, ast.AugAssign)}
    written |= {
        last_name(call.func.value)
        for call in file.calls_in(function)
        if isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_") and not call.func.attr.endswith("__")
    }
    written |= {last_name(node.value) for node in find(function, ast.Subscript) if isinstance(node.ctx, ast.Store)}
    return bool(names & written)


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("qkv", "self.to_", "_proj(", "proj(")),
    required=True,
)
