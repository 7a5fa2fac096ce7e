"""An operator that turns channels_last back to NCHW: have it, or the statement that ends it, keep the layout."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from ...analyzer.findings import Finding, Fix, Related, Safety
from ..workspace import Workspace
from .base import Case, Confirmation, Cure, DeviceFacts, Fixer
from .calls import edit_call
from .edits import Patch
from .imports import name_for
from .layers import layers_behind
from .memory_format import mentions_channels_last
from .outline import Outline, find, last_name
from .resolve import Value
from .scene import Scene, fixable, scene, searcher

_SLUG = "layout-broken-midway"
_RESHAPES = ("view", "reshape")
_TURNING_NORMS = ("GroupNorm", "InstanceNorm2d", "InstanceNorm3d")
_MAX_STATEMENTS = 5
"""Within so many statements a tensor that was taken apart is put together again."""
_TURNS = ("transpose", "permute", "flatten", "unsqueeze", "squeeze", "t", "swapaxes", "movedim")
_QUERIES = ("q", "k", "v", "qkv", "query", "key", "value")
_ATTENTION = ("scaled_dot_product_attention", "flash_attn_func", "matmul", "bmm")
_CHANNELS = re.compile(r"c|ch|channels?|(\w+_)?(dim|channels)|dim", re.IGNORECASE)
"""What the last size of a batch of images in NHWC is called."""
_RANK = 4
_FORMAT = "torch.channels_last"


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    file = view.here.outline
    for call in view.here.calls():
        if _keeps_images(file, call):
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


def _keeps_images(file: Outline, call: ast.Call) -> bool:
    """Whether a call is `x.contiguous()` of images. What was transposed before is none (attention, windows), but for
    the way back from NHWC; and a `view` of it would not find its strides in channels_last."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "contiguous" or call.args or call.keywords:
        return False
    above = file.parents[call]
    if isinstance(above, ast.Attribute) and above.attr in ("view", "numpy", "data_ptr"):
        return False
    if any(isinstance(one, ast.Call) and last_name(one.func) in _ATTENTION for one in file.ancestors(call)):
        return False
    given = call.func.value
    if last_name(given) in _QUERIES or (isinstance(given, ast.Attribute) and given.attr in ("T", "mT")):
        return False
    return not isinstance(given, ast.Call) or last_name(given.func) not in _TURNS or _is_back_from_nhwc(given)


def _is_back_from_nhwc(call: ast.Call) -> bool:
    order = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
    return last_name(call.func) == "permute" and order == [0, 3, 1, 2]


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
    if len(sizes) != _RANK or any(isinstance(size, ast.Starred) for size in sizes):
        return False
    return not isinstance(sizes[-1], ast.UnaryOp) and not _CHANNELS.fullmatch(last_name(sizes[-1]))


def _search(finding: Finding, workspace: Workspace, device: DeviceFacts) -> Sequence[Confirmation]:
    """Without a stack: copies of images in what modules compute, where some file asks for the layout at all."""
    if not any("channels_last" in (workspace.text(path) or "") for path in workspace.paths()):
        return ()
    found = fixable(searcher(_confirm, (".contiguous()",)))(finding, workspace, device)
    return [one for one in found if not one.location.qualname.endswith("__init__")]


FIXER = Fixer(
    _SLUG,
    _confirm,
    _search,
    cure=Cure(re.compile(r"memory_format\s*=\s*torch\.channels_last")),
)
