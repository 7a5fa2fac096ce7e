"""A shape that only the data knows, so that the host must wait for it: `torch.where` where it gives the same."""

from __future__ import annotations

import ast

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Fixer
from .edits import Patch
from .elementwise import is_mask, shape_root
from .expressions import in_brackets
from .imports import name_for
from .outline import Outline, find, last_name
from .resolve import Resolver, Value
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
        fix = _assigned(file, statement) or _reduced(file, statement) or _added(view.resolver, file, statement)
        if fix is not None:
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


def _added(resolver: Resolver, file: Outline, statement: ast.stmt) -> Fix | None:
    """`x[mask] += v`, `v` a number or a tensor that is the same for every element selected: `x += where(mask, v, 0)`.

    The mask may lack x's last dimensions, which no source tells: it is given as many as it needs.
    """
    match statement:
        case ast.AugAssign(
            target=ast.Subscript(value=ast.Name() | ast.Attribute() as target, slice=mask),
            op=ast.Add() | ast.Sub() as op,
            value=value,
        ) if is_mask(file, mask):
            pass
        case _:
            return None
    root = shape_root(file, mask)
    ranked = mask.id if isinstance(mask, ast.Name) else root.partition("@")[0] if root else ""
    if not ranked or not _is_same_for_all(resolver, Value(file, value)):
        return None
    patch = Patch(file)
    text, name, sign = file.segment(mask), file.segment(target), "+" if isinstance(op, ast.Add) else "-"
    if root != shape_root(file, target):
        text = f"{in_brackets(file, mask)}[(...,) + (None,) * ({name}.dim() - {ranked}.dim())]"
    patch.replace(statement, f"{name} {sign}= {name_for(patch, 'torch.where')}({text}, {file.segment(value)}, 0)")
    return Fix(_SLUG, "Add by torch.where, whose shape is fixed", Safety.SAFE, patch.edits())


def _is_same_for_all(resolver: Resolver, value: Value) -> bool:
    """Whether a value has no dimension that goes along the selected elements: a number, a weight of one row."""
    node = value.node
    if isinstance(node, ast.Constant | ast.UnaryOp):
        return isinstance(getattr(node, "operand", node), ast.Constant)
    if isinstance(node, ast.Attribute) and node.attr == "weight":
        made = resolver.find(Value(value.outline, node.value), _is_call)
        return bool(made) and all(_first_size(one, "torch.nn.Embedding") == 1 for one in made)
    made = resolver.find(value, _is_parameter)
    return bool(made) and all(_is_one_row(one) for one in made)


def _is_call(value: Value) -> bool:
    return isinstance(value.node, ast.Call)


def _is_parameter(value: Value) -> bool:
    return isinstance(value.node, ast.Call) and value.outline.dotted(value.node.func) == "torch.nn.Parameter"


def _is_one_row(parameter: Value) -> bool:
    """Whether a parameter is made with one dimension, or with two of which the first is 1."""
    assert isinstance(parameter.node, ast.Call)
    made = parameter.node.args[0] if parameter.node.args else None
    if not isinstance(made, ast.Call) or last_name(made.func) not in ("zeros", "ones", "randn", "rand", "empty"):
        return False
    sizes = [arg for arg in made.args if not isinstance(arg, ast.Starred)]
    if len(sizes) == 1:
        return isinstance(sizes[0], ast.Constant | ast.Name | ast.Attribute)
    return len(sizes) == 2 and isinstance(sizes[0], ast.Constant) and sizes[0].value == 1


def _first_size(made: Value, kind: str) -> object:
    node = made.node
    assert isinstance(node, ast.Call)
    is_kind = made.outline.dotted(node.func) == kind and bool(node.args)
    return node.args[0].value if is_kind and isinstance(node.args[0], ast.Constant) else None


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
