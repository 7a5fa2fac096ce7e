"""Copies in front of `grid_sample`: it takes any strides, so `.contiguous()` may go."""

from __future__ import annotations

import ast

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Fixer
from .bindings import FUNCTIONS
from .edits import Patch
from .outline import Outline, find, last_name
from .scene import scene, searcher

_SLUG = "sampling-point-copies"
_VIEWS = ("permute", "transpose", "unflatten", "unsqueeze", "squeeze", "mT", "movedim", "expand", "swapaxes")
_MAX_DEPTH = 6


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    file = view.here.outline
    functions = {one if isinstance(one, FUNCTIONS) else file.function(one) for one in view.here.statements}
    for function in functions:
        samplings = [call for call in find(function, ast.Call) if last_name(call.func) == "grid_sample"]
        copies = [copy for call in samplings for copy in _copies(file, call)]
        if copies:
            place = file.location(file.statement(copies[0]), case.location)
            return Confirmation(place, (_without(file, list(dict.fromkeys(copies))),))
        if samplings and any(_may_copy(call) for call in find(function, ast.Call)):
            message = (
                "keep values as (batch · heads, channels, height · width) from the start: each level is then a view"
            )
            return Confirmation(case.location, message=message)
    return None


def _copies(file: Outline, sampling: ast.Call) -> list[ast.Call]:
    """The `.contiguous()` calls that nothing but this sampling needs: in its arguments, or in what they were set to."""
    given = [*sampling.args[:2], *(k.value for k in sampling.keywords if k.arg in ("input", "grid"))]
    return [copy for argument in given if (copy := _copy_behind(file, argument, 0)) is not None]


def _copy_behind(file: Outline, node: ast.expr, depth: int) -> ast.Call | None:
    """The `.contiguous()` that a sampled tensor went through last, with only views behind it."""
    if depth > _MAX_DEPTH:
        return None
    match node:
        case ast.Call(func=ast.Attribute(attr="contiguous"), args=[], keywords=[]):
            return node
        case ast.Call(func=ast.Attribute(value=held, attr=name)) if name in _VIEWS:
            return _copy_behind(file, held, depth + 1)
        case ast.Name():
            source = _only_source(file, node)
            return None if source is None else _copy_behind(file, source, depth + 1)
        case _:
            return None


def _only_source(file: Outline, name: ast.Name) -> ast.expr | None:
    """What a name was set to right above, in the same block, if nothing else reads it."""
    statement = file.statement(name)
    block = file.block(statement)
    reads = [one for one in find(file.function(name), ast.Name) if one.id == name.id and isinstance(one.ctx, ast.Load)]
    before = [
        one
        for one in block[: block.index(statement)]
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and last_name(one.targets[0]) == name.id
    ]
    return before[-1].value if before and reads == [name] and isinstance(before[-1].targets[0], ast.Name) else None


def _may_copy(call: ast.Call) -> bool:
    return last_name(call.func) in ("contiguous", "reshape", "flatten", "clone")


def _without(file: Outline, copies: list[ast.Call]) -> Fix:
    patch = Patch(file)
    for copy in copies:
        assert isinstance(copy.func, ast.Attribute)
        patch.replace_span(file.span(copy.func.value)[1], file.span(copy)[1], "")
    # The values are the same; how fast a kernel reads strided maps is for the next recording to say.
    return Fix(_SLUG, "Sample the views, without copying them", Safety.SAFE, patch.edits())


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, ("grid_sample(",)), required=True)
