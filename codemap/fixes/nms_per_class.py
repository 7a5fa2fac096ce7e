"""Non-maximum suppression class by class: `batched_nms`, its result put in the loop's order."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Cure, Fixer
from .edits import Patch
from .imports import name_for
from .outline import Outline, find, last_name
from .scene import Frame, Scene, scene, searcher

_SLUG = "nms-per-class"
_SUPPRESSES = ("nms", "batched_nms", "soft_nms", "nms_rotated")


@dataclass(frozen=True, slots=True)
class _Parts:
    """`for c in labels.unique(): where labels == c, nms(boxes[...], scores[...], threshold)`, the indices collected."""

    labels: ast.expr
    boxes: ast.expr
    scores: ast.expr
    threshold: ast.expr
    kept: str
    """Name of the list that the kept indices go to."""


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    found = _loop(view) if view is not None else None
    if found is None:
        return None
    file, loop = found
    place = file.location(loop, case.location)
    if (fix := _batched(file, loop)) is not None:
        return Confirmation(place, (fix,))
    reason = "call batched_nms once, with the class (or image * classes + class) of each box as its index"
    return Confirmation(place, message=reason)


def _loop(view: Scene) -> tuple[Outline, ast.For] | None:
    """The innermost loop, here or in a caller, whose rounds suppress."""
    is_called = False
    for frame in view.frames:
        for statement in frame.statements:
            for above in (statement, *frame.outline.ancestors(statement)):
                if isinstance(above, ast.For) and (is_called or _suppresses(above)):
                    return frame.outline, above
        # A function that suppresses once may be called from a loop.
        is_called = is_called or any(_suppresses(one) for one in _functions(frame))
        if not is_called:
            return None
    return None


def _functions(frame: Frame) -> set[ast.AST]:
    return {frame.outline.function(statement) for statement in frame.statements}


def _suppresses(node: ast.AST) -> bool:
    return any(last_name(call.func) in _SUPPRESSES for call in find(node, ast.Call))


def _batched(file: Outline, loop: ast.For) -> Fix | None:
    """The loop and the `torch.cat` behind it as one call."""
    parts = _parts(file, loop)
    if parts is None:
        return None
    start, joined = _list_and_cat(file, loop, parts.kept)
    if start is None or joined is None:
        return None
    patch = Patch(file)
    nms = name_for(patch, "torchvision.ops.batched_nms")
    boxes, scores, labels, limit = (
        file.segment(one) for one in (parts.boxes, parts.scores, parts.labels, parts.threshold)
    )
    kept = parts.kept
    indent = file.indentation(loop)
    patch.delete([start])
    lines = [
        f"{kept} = {nms}({boxes}, {scores}, {labels}, {limit})",
        f"{kept} = {kept}[{labels}[{kept}].argsort(stable=True)]",
    ]
    patch.replace(loop, f"\n{indent}".join(lines))
    cat = file.statement(joined)
    if isinstance(cat, ast.Assign) and cat.value is joined and last_name(cat.targets[0]) == kept:
        patch.delete([cat])
    else:
        patch.replace(joined, kept)
    # Boxes with negative coordinates reach into the next class, and offsets round in half precision.
    return Fix(_SLUG, "Suppress all classes at once with batched_nms", Safety.UNSAFE, patch.edits())


def _parts(file: Outline, loop: ast.For) -> _Parts | None:
    if loop.orelse or not isinstance(loop.target, ast.Name) or not loop.body:
        return None
    held = {
        one.targets[0].id: one.value
        for one in loop.body[:-1]
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name)
    }
    match loop.body[-1]:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=kept), attr="append"), args=[result])):
            pass
        case _:
            return None
    match result:
        case ast.Subscript(value=ast.Name(id=index), slice=picked) if index in held:
            pass
        case _:
            return None
    call = held.get(picked.id) if isinstance(picked, ast.Name) else picked
    labels = _labels_of(file, held[index], loop.target.id)
    used = {index} | ({picked.id} if isinstance(picked, ast.Name) else set())
    # Names set in the body and used for something else would be missed.
    if not isinstance(call, ast.Call) or labels is None or set(held) != used or len(held) != len(loop.body) - 1:
        return None
    if last_name(call.func) != "nms" or len(call.args) + len(call.keywords) != 3 or len(call.args) < 2:
        return None
    sliced = [_sliced(one, index) for one in call.args[:2]]
    threshold = call.args[2] if len(call.args) == 3 else call.keywords[0].value
    boxes, scores = sliced
    if boxes is None or scores is None:
        return None
    if not _is_every_class(file, loop.iter, labels):
        return None
    return _Parts(labels, boxes, scores, threshold, kept)


def _labels_of(file: Outline, index: ast.expr, name: str) -> ast.expr | None:
    """labels of `torch.where(labels == c)[0]`, `(labels == c).nonzero().squeeze(1)` and the like."""
    node = index
    while isinstance(node, ast.Subscript) or (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("squeeze", "flatten", "view", "reshape", "nonzero")
        and not file.dotted(node.func).startswith("torch.")
    ):
        node = node.value if isinstance(node, ast.Subscript) else node.func.value  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(node, ast.Call) and file.dotted(node.func) in ("torch.where", "torch.nonzero") and node.args:
        node = node.args[0]
    match node:
        case ast.Compare(left=labels, ops=[ast.Eq()], comparators=[ast.Name(id=compared)]) if compared == name:
            return labels if isinstance(labels, ast.Name | ast.Attribute) and node is not index else None
        case _:
            return None


def _sliced(node: ast.expr, index: str) -> ast.expr | None:
    match node:
        case ast.Subscript(value=ast.Name() | ast.Attribute() as source, slice=ast.Name(id=name)) if name == index:
            return source
        case _:
            return None


def _is_every_class(file: Outline, source: ast.expr, labels: ast.expr) -> bool:
    """Whether a loop goes through all classes in order: `labels.unique()`, `range(n)`."""
    match source:
        case ast.Call(func=ast.Attribute(value=held, attr="unique"), args=[]):
            return file.segment(held) == file.segment(labels)
        case ast.Call(args=[held]) if file.dotted(source.func) == "torch.unique":
            return file.segment(held) == file.segment(labels)
        case ast.Call(func=ast.Name(id="range"), args=[_]):
            return True
        case _:
            return False


def _list_and_cat(file: Outline, loop: ast.For, name: str) -> tuple[ast.stmt | None, ast.expr | None]:
    """`kept = []` before the loop and the `torch.cat(kept)` behind it, where the list is used for nothing else."""
    uses = [node for node in find(file.function(loop), ast.Name) if node.id == name]
    block = file.block(loop)
    place = block.index(loop)
    starts = [one for one in block[:place] if isinstance(one, ast.Assign) and last_name(one.targets[0]) == name]
    inside = {id(node) for node in ast.walk(loop)}
    later = [node for node in uses if id(node) not in inside and node.lineno > loop.lineno]
    reads = [node for node in later if isinstance(node.ctx, ast.Load)]
    if not starts or not isinstance(starts[-1].value, ast.List) or starts[-1].value.elts or not reads:
        return None, None
    call = file.parents[reads[0]]
    if not isinstance(call, ast.Call) or file.dotted(call.func) not in ("torch.cat", "torch.concat"):
        return None, None
    # What is read after `kept = torch.cat(kept)` is its result; under another name the list must not be read again.
    statement = file.statement(reads[0])
    rebinds = isinstance(statement, ast.Assign) and last_name(statement.targets[0]) == name
    return (starts[-1], call) if len(call.args) == 1 and (rebinds or len(reads) == 1) else (None, None)


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, ("nms(",)), required=True, cure=Cure(re.compile(r"\bbatched_nms\(")))
