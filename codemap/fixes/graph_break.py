"""A compiled function that is left in its middle: which line, and what on it the compiler cannot take in."""

from __future__ import annotations

import ast

from ...analyzer.findings import Location
from .base import Case, Confirmation, Fixer
from .compiled import is_compiled
from .outline import Outline, last_name
from .scene import Frame, scene, searcher

_SLUG = "graph-break"
_READS = {
    "item": "reads a value of a tensor",
    "tolist": "reads the values of a tensor",
    "numpy": "leaves for numpy",
    "cpu": "moves a tensor to the host",
    "print": "prints",
    "nonzero": "makes a size that depends on values",
    "unique": "makes a size that depends on values",
    "masked_select": "makes a size that depends on values",
    "graph_break": "breaks the graph itself",
}
_NUMBERS = ("int", "float", "bool")


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    here = _broken(case, view.here) or view.here
    reason = _reason(here)
    is_named = here is not view.here
    return Confirmation(here.place, (), (), reason) if reason or is_named else None


def _confirm_compiled(case: Case) -> Confirmation | None:
    """The same, in functions that the source compiles by name: for traces that name no line."""
    view = scene(case)
    if view is None or not view.here.statements:
        return None
    file = view.here.outline
    function = file.function(view.here.statements[0])
    return _confirm(case) if is_compiled(view.resolver, file, function) else None


def _broken(case: Case, here: Frame) -> Frame | None:
    """The statement at the line that the trace names, where that lies in the function found."""
    line = next((str(one.value) for one in case.finding.evidence if one.id == "line"), "")
    if not line.isdecimal():
        return None
    function = here.outline.function(here.statements[0]) if here.statements else None
    if function is None or isinstance(function, ast.Module):
        return None
    if not function.lineno <= int(line) <= (function.end_lineno or function.lineno):
        return None
    statements = here.outline.statements_at(_line(case.location, int(line)))
    if not statements:
        return None
    return Frame(here.outline, here.outline.location(statements[0], case.location), tuple(statements))


def _line(like: Location, line: int) -> Location:
    return Location(like.path, line, 1, line, 1, like.qualname, like.how, like.confidence)


def _reason(frame: Frame) -> str:
    """Why the compiler leaves the function here, as far as the statement shows it."""
    for call in frame.calls():
        name = last_name(call.func)
        if name in _READS and (isinstance(call.func, ast.Attribute) or name == "print"):
            return f"it {_READS[name]}: {_short(frame.outline, call)}"
        if isinstance(call.func, ast.Name) and name in _NUMBERS and call.args:
            return f"it makes a number of a tensor: {_short(frame.outline, call)}"
        if frame.outline.dotted(call.func).startswith("numpy."):
            return f"it calls numpy: {_short(frame.outline, call)}"
    if any(isinstance(statement, ast.If | ast.While | ast.Assert) for statement in frame.statements):
        return "which way it goes depends on a tensor's values"
    return ""


def _short(file: Outline, call: ast.Call) -> str:
    text = " ".join(file.segment(call).split())
    return text if len(text) <= 60 else text[:57] + "..."


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm_compiled, (*(f"{name}(" for name in _READS), "if ", "while ")))
