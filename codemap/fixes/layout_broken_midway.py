"""An operator that turns channels_last back to NCHW: have it, or the statement that ends it, keep the layout."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Cure, Fixer
from .calls import edit_call
from .edits import Patch
from .imports import name_for
from .layers import layers_behind
from .memory_format import mentions_channels_last
from .outline import Outline, find, last_name
from .resolve import Value
from .scene import Scene, scene, searcher

_SLUG = "layout-broken-midway"
_RESHAPES = ("view", "reshape")
_TURNING_NORMS = ("GroupNorm", "InstanceNorm2d", "InstanceNorm3d")
_MAX_STATEMENTS = 5
"""Within so many statements a tensor that was taken apart is put together again."""
_RANK = 4
_FORMAT = "torch.channels_last"


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    file = view.here.outline
    for call in view.here.calls():
        if _is_plain_contiguous(call):
            return Confirmation(file.location(file.statement(call), case.location), (_keep(file, call),))
    for call in view.here.calls():
        if isinstance(call.func, ast.Attribute) and call.func.attr in (*_RESHAPES, "flatten", "unflatten"):
            return _put_back(view, call)
    for call in view.here.calls():
        if layers_behind(view.resolver, Value(file, call.func), _TURNING_NORMS):
            place = file.location(file.statement(call), case.location)
            return Confirmation(
                place, (), (), "this norm has no channels_last kernel here: keep NCHW up to it, or a batch norm"
            )
    return None


def _is_plain_contiguous(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "contiguous" and not (call.args or call.keywords)


def _keep(file: Outline, call: ast.Call) -> Fix:
    """`x.contiguous()` copies; in channels_last it gives back the tensor as it is."""
    patch = Patch(file)
    layout = name_for(patch, _FORMAT)
    assert isinstance(call.func, ast.Attribute)
    end = file.span(call)[1]
    start = file.span(call.func)[1] - len(call.func.attr)
    patch.replace_span(start, end, edit_call(file.text[start:end], {"memory_format": layout}))
    return Fix(_SLUG, "Keep channels_last", Safety.UNSAFE, patch.edits())


def _put_back(view: Scene, call: ast.Call) -> Confirmation | None:
    """Where the images are put together again, they are put into channels_last again."""
    file = view.here.outline
    statement = file.statement(call)
    place = file.location(statement, view.case.location)
    ends = _ends(file, statement)
    if any(mentions_channels_last(file, one) for one in _following(file, statement)):
        return None
    if ends is None:
        reason = "where the tensor becomes a batch of images again was not found: put it into channels_last there"
        return Confirmation(place, (), (), reason)
    patch = Patch(file)
    layout = name_for(patch, _FORMAT)
    end = file.span(ends)[1]
    patch.replace_span(end, end, f".contiguous(memory_format={layout})")
    related = (Related("images again", file.location(file.statement(ends), view.case.location)),)
    fix = Fix(_SLUG, "Put the images back into channels_last", Safety.UNSAFE, patch.edits())
    return Confirmation(place, (fix,), () if file.statement(ends) is statement else related)


def _following(file: Outline, statement: ast.stmt) -> list[ast.stmt]:
    block = file.block(statement)
    at = block.index(statement)
    return block[at : at + _MAX_STATEMENTS]


def _ends(file: Outline, statement: ast.stmt) -> ast.Call | None:
    """The first `.view(...)` or `.reshape(...)` to four sizes from a statement on."""
    for one in _following(file, statement):
        if not isinstance(one, ast.Assign | ast.Return | ast.Expr | ast.AnnAssign):
            break
        calls = [call for call in find(one, ast.Call) if _makes_images(call)]
        if calls:
            return max(calls, key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0))
    return None


def _makes_images(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or last_name(call.func) not in _RESHAPES or call.keywords:
        return False
    sizes = call.args
    if len(sizes) == 1:
        if isinstance(sizes[0], ast.Attribute) and sizes[0].attr == "shape":
            return True
        sizes = sizes[0].elts if isinstance(sizes[0], ast.Tuple | ast.List) else sizes
    return len(sizes) == _RANK and not any(isinstance(size, ast.Starred) for size in sizes)


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, (".contiguous()",)),
    cure=Cure(re.compile(r"memory_format\s*=\s*torch\.channels_last")),
)
