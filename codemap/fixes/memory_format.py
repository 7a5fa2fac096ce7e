"""Putting a model and its input into `channels_last`, or `channels_last_3d`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from .attention_parts import find_module
from .calls import edit_call
from .edits import Patch
from .imports import name_for
from .models import ModelCall, chain_end
from .outline import Outline, find, last_name
from .resolve import Resolver, Value
from .transfers import is_dtype


@dataclass(frozen=True, slots=True)
class Layout:
    """A memory format, and the dimensions of the tensors that can take it."""

    name: str
    rank: int


IMAGES = Layout("torch.channels_last", 4)
VOLUMES = Layout("torch.channels_last_3d", 5)
_FACTORIES = frozenset(f"torch.{name}" for name in ("randn", "rand", "zeros", "ones", "empty"))
_FLAT_LAYERS = ("Linear", "Embedding")
"""Layers whose input is no batch of images."""


def mentions_channels_last(file: Outline, node: ast.AST) -> bool:
    """Whether code under a node sets the layout already."""
    return any(
        isinstance(one, ast.Attribute | ast.Name) and last_name(one).startswith("channels_last")
        for one in ast.walk(node)
    )


def is_converted(file: Outline, target: ast.expr | None, chain: ast.expr) -> bool:
    """Whether a model is put into channels_last where it is made, or later by name in the same file."""
    if mentions_channels_last(file, chain):
        return True
    name = last_name(target) if target is not None else ""
    return bool(name) and any(
        isinstance(call.func, ast.Attribute)
        and last_name(call.func.value) == name
        and any(mentions_channels_last(file, keyword) for keyword in call.keywords)
        for call in file.calls("to")
    )


def is_handed_out(construction: Value) -> bool:
    """Whether a helper returns what it makes, to callers who may not want the layout."""
    return isinstance(construction.outline.statement(construction.node), ast.Return)


def convert_model(patch: Patch, construction: ast.expr, to: Layout = IMAGES) -> None:
    """`.to(device)` at the end of the model's construction also sets the layout; else a `.to` of its own does."""
    file = patch.outline
    chain = chain_end(file, construction)
    layout = name_for(patch, to.name)
    move = _last_move(chain)
    if move is not None and isinstance(move.func, ast.Attribute):
        start, end = file.span(move.func)[1] - len(move.func.attr), file.span(move)[1]
        patch.replace_span(start, end, edit_call(file.text[start:end], {"memory_format": layout}))
    else:
        end = file.span(chain)[1]
        patch.replace_span(end, end, f".to(memory_format={layout})")


def convert_input(patch: Patch, model: ModelCall, resolver: Resolver, to: Layout = IMAGES) -> None:
    """The model's first argument is put into the layout where it is moved to the device, else at the call.

    Left alone where it is no batch of images: other tensors cannot take the layout, and the weights' is enough.
    """
    file = patch.outline
    given = next((arg for arg in model.call.args if not isinstance(arg, ast.Starred)), None)
    if given is None or mentions_channels_last(file, given) or not _may_take(resolver, model, given, to):
        return
    layout = name_for(patch, to.name)
    move = given if _is_plain_move(file, given) else None
    if isinstance(given, ast.Name):
        move = _move_of(file, given)
        if any(mentions_channels_last(file, one.value) for one in file.lookup(given) if one.value is not None):
            return
    if isinstance(move, ast.Call) and isinstance(move.func, ast.Attribute):
        start, end = file.span(move.func)[1] - len(move.func.attr), file.span(move)[1]
        patch.replace_span(start, end, edit_call(file.text[start:end], {"memory_format": layout}))
        return
    text = file.segment(given)
    if not isinstance(given, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        text = f"({text})"
    patch.replace(given, f"{text}.contiguous(memory_format={layout})")


def _may_take(resolver: Resolver, model: ModelCall, given: ast.expr, to: Layout) -> bool:
    """False where a model's input is known not to have the layout's dimensions: by the call that makes it, or by the
    layer that it goes into first."""
    made = resolver.find(Value(model.outline, given), lambda one: _rank(one) is not None)
    if any(_rank(one) != to.rank for one in made):
        return False
    owner = resolver.instance_class(model.constructions[0])
    forward = resolver.method(owner, "forward") if owner is not None else None
    if forward is None or isinstance(forward.node, ast.ClassDef) or len(forward.node.args.args) < 2:
        return True
    name = forward.node.args.args[1].arg
    uses = (call for call in find(forward.node, ast.Call) if call.args and last_name(call.args[0]) == name)
    return not any(find_module(forward.outline, call.func, _FLAT_LAYERS) for call in uses)


def _rank(value: Value) -> int | None:
    """Number of dimensions of what `torch.randn(8, 64)` and the like make; None where it isn't spelt out."""
    node = value.node
    if not isinstance(node, ast.Call) or value.outline.dotted(node.func) not in _FACTORIES:
        return None
    sizes = node.args
    if len(sizes) == 1 and isinstance(sizes[0], ast.Tuple | ast.List):
        sizes = sizes[0].elts
    return None if not sizes or any(isinstance(one, ast.Starred) for one in sizes) else len(sizes)


def has_views(file: Outline) -> bool:
    """Whether classes of a file call `.view(...)`, which fails on some channels_last tensors."""
    return any(file.enclosing_class(call) is not None for call in file.calls("view"))


def _last_move(chain: ast.expr) -> ast.Call | None:
    """The `.to(device)` nearest the end of a construction chain."""
    current = chain
    while isinstance(current, ast.Call) and isinstance(current.func, ast.Attribute):
        if current.func.attr == "to" and current.args:
            return current
        current = current.func.value
    return None


def _move_of(file: Outline, name: ast.Name) -> ast.Call | None:
    """The `.to(device)` in the same function that last gave a name its value before it is read."""
    moves = [
        binding.value
        for binding in file.bindings(file.function(name), name.id)
        if isinstance(binding.value, ast.Call)
        and _is_plain_move(file, binding.value)
        and (binding.value.lineno, binding.value.col_offset) < (name.lineno, name.col_offset)
    ]
    last = moves[-1] if moves else None
    # Something else may have been stored under the name after the move.
    later = [
        binding
        for binding in file.bindings(file.function(name), name.id)
        if last is not None and last.lineno < getattr(binding.node, "lineno", 0) < name.lineno
    ]
    return None if later else last


def _is_plain_move(file: Outline, node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "to"
        and bool(node.args or any(keyword.arg == "device" for keyword in node.keywords))
        and not any(keyword.arg in ("memory_format", None) for keyword in node.keywords)
        and not (node.args and is_dtype(file, node.args[0]))
        and not find(node.func.value, ast.Dict)
    )
