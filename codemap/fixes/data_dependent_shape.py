"""A shape that only the data knows, so that the host must wait for it: `torch.where` where it gives the same."""

from __future__ import annotations

import ast

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Fixer
from .edits import Patch
from .elementwise import is_mask, shape_root
from .imports import name_for
from .outline import Outline, find, last_name
from .scene import Scene, scene, searcher
from .versions import is_older

_SLUG = "data-dependent-shape"
_SHAPING = ("nonzero", "argwhere", "unique", "unique_consecutive", "masked_select", "bincount")
_REDUCED = ("sum", "mean")


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None or case.device.is_cpu:
        return None
    file = view.here.outline
    # torch.where takes a number for a branch, of any type, from 2.0 on.
    fixable = () if is_older(case.device.torch_version, (2, 0)) else view.here.statements
    for statement in fixable:
        if (fix := _assigned(file, statement) or _reduced(file, statement)) is not None:
            return Confirmation(file.location(statement, case.location), (fix,))
    return Confirmation(case.location) if _makes_shape(view) else None


def _makes_shape(view: Scene) -> bool:
    """Whether the statements hold an operation whose result's shape depends on values."""
    file = view.here.outline
    for value in view.here.values():
        match value.node:
            case ast.Call() as call:
                if last_name(call.func) in _SHAPING:
                    return True
                if file.dotted(call.func) == "torch.where" and len(call.args) == 1:
                    return True
                if last_name(call.func) == "repeat_interleave" and not any(
                    keyword.arg == "output_size" for keyword in call.keywords
                ):
                    return not any(isinstance(arg, ast.Constant) for arg in call.args)
            case ast.Subscript(ctx=ast.Load()) as subscript:
                if any(is_mask(file, index) for index in _indices(subscript)):
                    return True
            case ast.Subscript(ctx=ast.Store()) as subscript:
                # `x[mask] = 0` is a masked fill, which does not wait.
                if any(is_mask(file, index) for index in _indices(subscript)) and not _is_scalar_store(file, subscript):
                    return True
            case _:
                pass
    return False


def _indices(subscript: ast.Subscript) -> list[ast.expr]:
    return list(subscript.slice.elts) if isinstance(subscript.slice, ast.Tuple) else [subscript.slice]


def _is_scalar_store(file: Outline, subscript: ast.Subscript) -> bool:
    statement = file.statement(subscript)
    if isinstance(statement, ast.AugAssign):
        return False  # `x[mask] += 1` reads the selection first
    value = getattr(statement, "value", None)
    if isinstance(value, ast.UnaryOp):
        value = value.operand
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Call) and last_name(value.func) == "float")


def _assigned(file: Outline, statement: ast.stmt) -> Fix | None:
    """`x[mask] = y[mask]` with a mask of x's own shape."""
    match statement:
        case ast.Assign(
            targets=[ast.Subscript(value=ast.Name() as target, slice=mask)],
            value=ast.Subscript(value=source, slice=same),
        ) if ast.dump(mask) == ast.dump(same) and is_mask(file, mask):
            pass
        case _:
            return None
    root = shape_root(file, target)
    if root is None or shape_root(file, mask) != root or shape_root(file, source) != root:
        return None
    patch = Patch(file)
    where = name_for(patch, "torch.where")
    texts = [file.segment(node) for node in (mask, source, target)]
    patch.replace(statement, f"{texts[2]}.copy_({where}({', '.join(texts)}))")
    return Fix(_SLUG, "Choose by torch.where, whose shape is fixed", Safety.SAFE, patch.edits())


def _reduced(file: Outline, statement: ast.stmt) -> Fix | None:
    """`x[mask].sum()` and `x[mask].mean()` with a mask of x's own shape."""
    patch, count = Patch(file), 0
    for call in find(statement, ast.Call):
        if file.statement(call) is not statement or call.args or call.keywords:
            continue
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in _REDUCED:
            continue
        picked = _picked(file, call.func.value)
        if picked is None:
            continue
        source, mask = picked
        root = shape_root(file, source)
        if root is None or shape_root(file, mask) != root:
            continue
        where = name_for(patch, "torch.where")
        text = f"{where}({file.segment(mask)}, {file.segment(source)}, 0).sum()"
        if call.func.attr == "mean":
            counted = file.segment(mask)
            counted = counted if isinstance(mask, ast.Name | ast.Attribute | ast.Call) else f"({counted})"
            text = f"{text} / {counted}.sum()"
            text = text if isinstance(file.parents[call], ast.Assign | ast.Return | ast.AugAssign) else f"({text})"
        patch.replace(call, text)
        count += 1
    if not count:
        return None
    return Fix(_SLUG, "Mask with torch.where instead of selecting", Safety.SAFE, patch.edits())


def _picked(file: Outline, node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """What is selected from, and the mask: `x[mask]`, `torch.masked_select(x, mask)`, `x.masked_select(mask)`."""
    match node:
        case ast.Subscript(value=source, slice=mask) if is_mask(file, mask):
            return source, mask
        case ast.Call(args=[source, mask]) if file.dotted(node.func) == "torch.masked_select":
            return source, mask
        case ast.Call(func=ast.Attribute(value=source, attr="masked_select"), args=[mask]):
            return source, mask
        case _:
            return None


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, ("[", "nonzero", "unique", "masked_select", "where(")))
