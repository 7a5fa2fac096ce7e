"""Putting a model and its input into `channels_last`."""

from __future__ import annotations

import ast

from .calls import edit_call
from .edits import Patch
from .imports import name_for
from .models import ModelCall, chain_end
from .outline import Outline, find, last_name
from .transfers import is_dtype

FORMAT = "torch.channels_last"


def mentions_channels_last(file: Outline, node: ast.AST) -> bool:
    """Whether code under a node sets the layout already."""
    return any(isinstance(one, ast.Attribute) and one.attr.startswith("channels_last") for one in ast.walk(node))


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


def convert_model(patch: Patch, construction: ast.expr) -> None:
    """`.to(device)` at the end of the model's construction also sets the layout; else a `.to` of its own does."""
    file = patch.outline
    chain = chain_end(file, construction)
    layout = name_for(patch, FORMAT)
    move = _last_move(chain)
    if move is not None and isinstance(move.func, ast.Attribute):
        start, end = file.span(move.func)[1] - len(move.func.attr), file.span(move)[1]
        patch.replace_span(start, end, edit_call(file.text[start:end], {"memory_format": layout}))
    else:
        end = file.span(chain)[1]
        patch.replace_span(end, end, f".to(memory_format={layout})")


def convert_input(patch: Patch, model: ModelCall) -> None:
    """The model's first argument is put into the layout where it is moved to the device, else at the call."""
    file = patch.outline
    given = next((arg for arg in model.call.args if not isinstance(arg, ast.Starred)), None)
    if given is None or mentions_channels_last(file, given):
        return
    layout = name_for(patch, FORMAT)
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
