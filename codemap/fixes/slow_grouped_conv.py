"""A slow grouped convolution: another layout for this layer on the CPU, float32 for it under autocast on a device."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Cure, Fixer
from .edits import Patch
from .imports import name_for
from .layers import callers_of, given_to, is_opaque, layers_behind, numbers_of
from .memory_format import mentions_channels_last
from .outline import Outline
from .resolve import Resolver, Value
from .scene import Scene, scene, searcher

_SLUG = "slow-grouped-conv"
_DONE = re.compile(r"enabled\s*=\s*False")


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    for call in view.here.calls():
        layers = layers_behind(view.resolver, Value(view.here.outline, call.func), ("Conv2d", "Conv3d"))
        if layers and all(_is_grouped(view.resolver, layer) for layer in layers) and len(call.args) == 1:
            return _confirmation(view, call, layers[0])
    return None


def _is_grouped(resolver: Resolver, layer: Value) -> bool:
    groups = given_to(resolver, layer, "groups")
    return groups is not None and not is_opaque(layer) and numbers_of(groups.node) != (1,)


def _confirmation(view: Scene, call: ast.Call, layer: Value) -> Confirmation | None:
    file = view.here.outline
    statement = file.statement(call)
    place = file.location(statement, view.case.location)
    made = Related("the convolution", layer.outline.location(layer.outline.statement(layer.node), view.case.location))
    if view.case.device.is_cpu:
        if mentions_channels_last(file, call):
            return None
        return Confirmation(place, (_in_channels_last(file, call),), (made,))
    if any(_switches_autocast_off(file, above) for above in file.ancestors(call)):
        return None
    if not any("autocast" in text for path in view.case.workspace.paths() if (text := view.case.workspace.text(path))):
        return Confirmation(place, (), (made,), "its weights are in half precision: keep this layer in float32")
    if not isinstance(statement, ast.Assign | ast.Return | ast.AugAssign) or not file.indentation(statement):
        return Confirmation(place, (), (made,), "the statement cannot stand under a `with` of its own")
    return Confirmation(place, (_in_float32(file, call, statement),), (made,))


def _switches_autocast_off(file: Outline, node: ast.AST) -> bool:
    if not isinstance(node, ast.With):
        return False
    return any("autocast" in (text := file.segment(item.context_expr)) and _DONE.search(text) for item in node.items)


def _in_channels_last(file: Outline, call: ast.Call) -> Fix:
    """The input goes in in the layout. The result stays in it: pointwise layers and norms pass it on, and turning it
    back would take most of what was gained."""
    patch = Patch(file)
    layout = name_for(patch, "torch.channels_last")
    given = call.args[0]
    text = file.segment(given)
    if not isinstance(given, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        text = f"({text})"
    whole = f"{file.segment(call.func)}({text}.contiguous(memory_format={layout}))"
    patch.replace(call, whole)
    return Fix(f"{_SLUG}/layout", "Run this layer in channels_last", Safety.UNSAFE, patch.edits())


def _in_float32(file: Outline, call: ast.Call, statement: ast.stmt) -> Fix:
    """The statement under `autocast(enabled=False)`, with the layer's input in float32."""
    patch = Patch(file)
    autocast = name_for(patch, "torch.autocast")
    start, end = file.span(statement)
    first, last = file.span(call.args[0])
    given = call.args[0]
    text = file.text[first:last]
    if not isinstance(given, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        text = f"({text})"
    indent = file.indentation(statement)
    step = "\t" if indent.startswith("\t") else "    "
    body = f"{file.text[start:first]}{text}.float(){file.text[last:end]}".replace("\n", f"\n{step}")
    patch.replace_span(start, end, f'with {autocast}("cuda", enabled=False):\n{indent}{step}{body}')
    return Fix(f"{_SLUG}/dtype", "Run this layer in float32", Safety.UNSAFE, patch.edits())


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("groups",), lambda file: callers_of(file, ("Conv2d", "Conv3d"), "groups")),
    cure=Cure(re.compile(r"memory_format|enabled\s*=\s*False")),
)
