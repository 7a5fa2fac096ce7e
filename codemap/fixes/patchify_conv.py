"""A convolution that cuts patches: one product of the patches with the same weight."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Cure, Fixer
from .edits import Patch
from .imports import name_for
from .layers import callers_of, free_names, given_to, is_opaque, layers_behind, numbers_of
from .outline import COMPREHENSIONS, Outline, find, last_name
from .resolve import Resolver, Value
from .scene import Scene, scene, searcher

_SLUG = "patchify-conv"
_KINDS = {"Conv2d": 2, "Conv3d": 3}
_LATE = (*COMPREHENSIONS, ast.Lambda, ast.IfExp, ast.BoolOp)
"""Expressions whose parts may not run, or more than once: nothing in them can be taken out before the statement."""


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    for call in view.here.calls():
        layers = layers_behind(view.resolver, Value(view.here.outline, call.func), tuple(_KINDS))
        if layers and all(_cuts_patches(view.resolver, layer) for layer in layers):
            return _confirmation(view, call, layers)
    return None


def _cuts_patches(resolver: Resolver, layer: Value) -> bool:
    """Whether a constructor gives the same for kernel and stride, and nothing that makes patches overlap."""
    kernel, stride = given_to(resolver, layer, "kernel_size"), given_to(resolver, layer, "stride")
    if kernel is None or stride is None or is_opaque(layer) or not _is_same(resolver, kernel, stride):
        return False
    if set(_numbers(resolver, kernel)) == {1}:  # a 1x1 convolution is a product already
        return False
    for name, harmless in (("padding", 0), ("dilation", 1), ("groups", 1)):
        passed = given_to(resolver, layer, name)
        is_valid = passed is not None and name == "padding" and getattr(passed.node, "value", "") == "valid"
        if passed is not None and not is_valid and set(numbers_of(passed.node)) != {harmless}:
            return False
    return True


def _is_same(resolver: Resolver, one: Value, other: Value) -> bool:
    """Equal texts, or names of equal numbers."""
    if ast.dump(one.node) == ast.dump(other.node):
        return True
    first, second = (_numbers(resolver, value) for value in (one, other))
    return bool(first) and (first == second or (set(first) == set(second) and len(set(first)) == 1))


def _numbers(resolver: Resolver, value: Value) -> tuple[int, ...]:
    found = resolver.find(value, lambda one: bool(numbers_of(one.node)))
    return numbers_of(found[0].node) if len(found) == 1 else ()


def _confirmation(view: Scene, call: ast.Call, layers: list[Value]) -> Confirmation:
    file = view.here.outline
    statement = file.statement(call)
    place = file.location(statement, view.case.location)
    home = layers[0].outline
    related = (Related("the convolution", home.location(home.statement(layers[0].node), view.case.location)),)
    if len(call.args) != 1 or call.keywords or isinstance(call.args[0], ast.Starred):
        return Confirmation(place, (), related, "the call takes more than the input")
    if _may_not_run(file, call, statement) or _shares_line(file, statement):
        return Confirmation(place, (), related, "the call stands inside an expression that cannot be taken apart")
    axes = {_KINDS[last_name(layer.node.func)] for layer in layers if isinstance(layer.node, ast.Call)}
    if len(axes) != 1:
        return Confirmation(place, (), related, "the layer has two axes or three, by the configuration")
    return Confirmation(place, (_fix(view, call, statement, axes.pop()),), related)


def _may_not_run(file: Outline, call: ast.Call, statement: ast.stmt) -> bool:
    """Whether a call in a statement may run never or often: what it needs cannot be worked out before."""
    if isinstance(statement, ast.While):
        return True
    for above in file.ancestors(call):
        if above is statement:
            return False
        if isinstance(above, _LATE):
            return True
    return False


def _shares_line(file: Outline, statement: ast.stmt) -> bool:
    before = file.text[file.line_starts[statement.lineno - 1] : file.span(statement)[0]]
    return bool(before.strip())


def _fix(view: Scene, call: ast.Call, statement: ast.stmt, axes: int) -> Fix:
    """Patches as rows of a matrix, times the flattened weight; the result as the convolution gives it."""
    file = view.here.outline
    patch = Patch(file)
    layer, image = file.segment(call.func), file.segment(call.args[0])
    sizes = free_names(file, call, ("kt", "kh", "kw")[-axes:])
    (patches,) = free_names(file, call, ("patches",))
    if not isinstance(call.args[0], ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        image = f"({image})"
    cut = "".join(f".unfold({axis}, {size}, {size})" for axis, size in enumerate(sizes, 2))
    # The grid of patches, then channel and pixels of each.
    order = ", ".join(map(str, (0, *range(2, 2 + axes), 1, *range(2 + axes, 2 + 2 * axes))))
    back = ", ".join(map(str, (0, axes + 1, *range(1, axes + 1))))
    lines = (
        f"{', '.join(sizes)} = {layer}.kernel_size",
        f"{patches} = {image}{cut}.permute({order}).flatten({axes + 1})",
    )
    start = file.span(statement)[0]
    patch.insert(start, "".join(line + file.newline + file.indentation(statement) for line in lines))
    linear = name_for(patch, "torch.nn.functional.linear")
    patch.replace(call, f"{linear}({patches}, {layer}.weight.flatten(1), {layer}.bias).permute({back})")
    safety = Safety.UNSAFE if _is_viewed(file, call) else Safety.SAFE
    return Fix(_SLUG, "Cut the patches and multiply them with the same weight", safety, patch.edits())


def _is_viewed(file: Outline, call: ast.Call) -> bool:
    """Whether `.view(...)` follows, which may fail on the result: it lies in memory channels last."""
    return any(
        one.func.attr == "view" and _end(one) > _end(call)
        for one in find(file.function(call), ast.Call)
        if isinstance(one.func, ast.Attribute)
    )


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("stride", *_KINDS), lambda file: callers_of(file, tuple(_KINDS), "stride")),
    cure=Cure(re.compile(r"\.unfold\(")),
)
