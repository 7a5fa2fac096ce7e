"""A matrix product whose size does not fit tensor cores: pad the head's outputs and cut them off again."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Fixer
from .edits import Patch
from .models import assigned_target
from .outline import Outline, find, last_name
from .resolve import Resolver, Value
from .scene import Scene, scene, searcher
from .settings import argument, constants

_SLUG = "misaligned-gemm"
_UNIT = 8
_PRODUCTS = ("matmul", "bmm", "baddbmm", "mm", "addmm", "einsum", "mv", "linear", "inner")
_PAD_TOKENS = "pad the tokens or the head dimension, or use F.scaled_dot_product_attention, which pads by itself"


@dataclass(frozen=True, slots=True)
class _Layer:
    """A call of a linear layer and where the layer is made."""

    call: ast.Call
    made: Value
    sizes: tuple[int | None, int | None]
    """Inputs and outputs; None where the source does not tell."""


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None or case.device.is_cpu:
        return None
    layers = [layer for call in view.here.calls() if (layer := _layer(view, call)) is not None]
    for layer in layers:
        if any(size is not None and size % _UNIT for size in layer.sizes):
            return _odd_layer(view, layer)
    if any(_is_product(value.node) for value in view.here.values()):
        return Confirmation(case.location, message=_PAD_TOKENS)
    unknown = [layer for layer in layers if None in layer.sizes and not _is_padded(view.resolver, layer.made)]
    if unknown:
        made = unknown[0].made
        place = made.outline.location(made.outline.statement(made.node), case.location)
        return Confirmation(place, message="its sizes are set outside this call: round them up to multiples of 8")
    return None


def _layer(view: Scene, call: ast.Call) -> _Layer | None:
    """The linear layer that a call runs, or that a `Sequential` it runs holds; of several the one that does not fit."""
    func = call.func
    if not isinstance(func, ast.Name) and not (isinstance(func, ast.Attribute) and last_name(func.value) == "self"):
        return None  # a method of a tensor, or torch's
    resolver = view.resolver
    called = Value(view.here.outline, func)
    made = resolver.find(called, _is_linear) if resolver.definition(called) is None else []
    layers = [_Layer(call, one, (_size(resolver, one, 0), _size(resolver, one, 1))) for one in made]
    odd = [layer for layer in layers if any(size is not None and size % _UNIT for size in layer.sizes)]
    return next(iter(odd or layers), None)


def _is_linear(value: Value) -> bool:
    return isinstance(value.node, ast.Call) and value.outline.dotted(value.node.func) == "torch.nn.Linear"


def _size(resolver: Resolver, made: Value, position: int) -> int | None:
    """A size of a layer where the source gives one number for it, be it through parameters and options."""
    held = argument(resolver, made, ("in_features", "out_features")[position], position).value
    if held is None or not isinstance(held.node, ast.Constant | ast.Name | ast.Attribute):
        return None
    named = resolver.find(held, lambda one: isinstance(one.node, ast.Constant | ast.Attribute))
    found = [one for name in named for one in constants(resolver, name)]
    numbers = {one.node.value for one in found if isinstance(one.node, ast.Constant)}
    only = numbers.pop() if len(numbers) == 1 else None
    return only if isinstance(only, int) else None


def _is_padded(resolver: Resolver, made: Value) -> bool:
    """Whether the number of outputs is worked out in place, as the fix does."""
    held = argument(resolver, made, "out_features", 1).value
    return held is not None and isinstance(held.node, ast.BinOp)


def _is_product(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    return isinstance(node, ast.Call) and last_name(node.func) in _PRODUCTS


def _odd_layer(view: Scene, layer: _Layer) -> Confirmation:
    made = layer.made
    place = made.outline.location(made.outline.statement(made.node), view.case.location)
    inputs, outputs = layer.sizes
    if outputs is None or outputs % _UNIT == 0:
        return Confirmation(place, message=f"{inputs} inputs: round the layer before it up to a multiple of {_UNIT}")
    fix = _padded(view, layer, outputs)
    if fix is None:
        return Confirmation(place, message=f"{outputs} outputs: round them up to a multiple of {_UNIT}")
    return Confirmation(place, (fix,))


def _padded(view: Scene, layer: _Layer, outputs: int) -> Fix | None:
    """The layer with its outputs rounded up, and the surplus cut off where it is called; None where more than that
    call uses the layer."""
    file, made = view.here.outline, layer.made
    given = argument(view.resolver, made, "out_features", 1).value
    if given is None or made.outline is not file or given.outline is not file or not _is_used_once(file, layer):
        return None
    assert isinstance(made.node, ast.Call)
    if not _is_last(file, made.node):
        return None
    count = _readable_at(file, given.node, layer.call, outputs)
    if count is None:
        return None
    rounded = -(-outputs // _UNIT) * _UNIT
    patch = Patch(file)
    is_number = isinstance(given.node, ast.Constant)
    wide = str(rounded) if is_number else f"({file.segment(given.node)} + {_UNIT - 1}) // {_UNIT} * {_UNIT}"
    patch.replace(given.node, wide)
    patch.insert(file.span(layer.call)[1], f"[..., :{count}]")
    return Fix(_SLUG, f"Pad the outputs from {outputs} to {rounded} and cut them off", Safety.UNSAFE, patch.edits())


def _is_used_once(file: Outline, layer: _Layer) -> bool:
    """Whether the call is all that the file does with the layer: no tied weight, no second head."""
    name = last_name(layer.call.func)
    loads = [
        node
        for node in file.nodes
        if isinstance(node, ast.Attribute | ast.Name) and last_name(node) == name and isinstance(node.ctx, ast.Load)
    ]
    return bool(name) and loads == [layer.call.func]


def _is_last(file: Outline, made: ast.Call) -> bool:
    """Whether what the layer gives is what the call gives: it is assigned itself, or ends a `Sequential` that is."""
    whole: ast.expr = made
    while isinstance(outer := file.parents[whole], ast.Call):
        if last_name(outer.func) != "Sequential" or not outer.args or outer.args[-1] is not whole:
            return False
        whole = outer
    return assigned_target(file, whole) is not None


def _readable_at(file: Outline, given: ast.expr, call: ast.Call, outputs: int) -> str | None:
    """How the number of outputs is written where the layer is called; None if it cannot be."""
    if isinstance(given, ast.Constant):
        return str(outputs)
    if isinstance(given, ast.Attribute):
        return file.segment(given) if file.enclosing_class(given) is file.enclosing_class(call) else None
    if not isinstance(given, ast.Name):
        return None
    bound = file.lookup(given)
    if bound and all(file.parents.get(one.node) is file.tree for one in bound):
        return given.id
    kept = [
        target
        for statement in find(file.function(given), ast.Assign)
        if isinstance(statement.value, ast.Name) and statement.value.id == given.id
        for target in statement.targets
        if isinstance(target, ast.Attribute) and last_name(target.value) == "self"
    ]
    return file.segment(kept[0]) if kept else None


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, ("head(", "classifier(", "fc(")))
