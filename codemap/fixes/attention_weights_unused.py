"""`nn.MultiheadAttention` asked for weights that nobody reads: `need_weights=False`."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Safety
from .attention_parts import given
from .base import Case, Confirmation, Cure, Fixer
from .calls import edit_call
from .edits import Patch
from .outline import Outline, find, last_name
from .resolve import Resolver, Value
from .scene import scene, searcher

_SLUG = "attention-weights-unused"
_KIND = "MultiheadAttention"
_HOLDERS = ("ModuleList", "ModuleDict", "zip", "enumerate", "reversed", "list", "values", "items")
"""Calls that hand on the modules they are given; what any other call returns is no module."""
_NEED_WEIGHTS_POSITION = 4
"""`forward(query, key, value, key_padding_mask, need_weights, ...)`."""


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    for frame in view.frames:
        file = frame.outline
        for call in frame.calls():
            if not _asks_for_weights(call) or not _is_module(view.resolver, file, call) or not _drops(file, call):
                continue
            place = file.location(file.statement(call), case.location)
            fix = Fix(_SLUG, "Ask for no attention weights (need_weights=False)", Safety.SAFE, _edits(file, call))
            message = "nn.MultiheadAttention computes attention weights that are not used"
            return Confirmation(place, (fix,), (), message)
    return None


def _is_module(resolver: Resolver, file: Outline, call: ast.Call) -> bool:
    """Whether the call is one of an `nn.MultiheadAttention` that the workspace makes."""

    def is_made(value: Value) -> bool:
        return isinstance(value.node, ast.Call) and last_name(value.node.func) == _KIND

    def holds_module(value: Value) -> bool:
        return not isinstance(value.node, ast.Call) or last_name(value.node.func) in _HOLDERS

    made = resolver.find(Value(file, call.func), is_made, holds_module)
    return any(one.outline.dotted(one.node.func).startswith("torch.") for one in made if isinstance(one.node, ast.Call))


def _asks_for_weights(call: ast.Call) -> bool:
    """Whether a call leaves `need_weights` at its default or sets it."""
    if any(keyword.arg is None for keyword in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
        return False
    asked = given(call, "need_weights", _NEED_WEIGHTS_POSITION)
    return asked is None or (isinstance(asked, ast.Constant) and asked.value is True)


def _edits(file: Outline, call: ast.Call):
    patch = Patch(file)
    asked = given(call, "need_weights", _NEED_WEIGHTS_POSITION)
    if asked is not None:
        patch.replace(asked, "False")
    else:
        column = file.position(file.span(call)[0])[1] - 1
        patch.replace(call, edit_call(file.segment(call), {"need_weights": "False"}, column=column))
    return patch.edits()


def _drops(file: Outline, call: ast.Call) -> bool:
    """Whether the second item of the call's result, the weights, is read by nobody."""
    parent = file.parents[call]
    if isinstance(parent, ast.Subscript):
        return _is_first(parent)
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return False
    target = parent.targets[0]
    if isinstance(target, ast.Name):
        return _only_first_is_read(file, call, target)
    if isinstance(target, ast.Tuple | ast.List) and len(target.elts) == 2:
        weights = target.elts[1]
        if isinstance(weights, ast.Starred):
            weights = weights.value
        return isinstance(weights, ast.Name) and not _reads(file, call, weights.id)
    return False


def _only_first_is_read(file: Outline, call: ast.Call, target: ast.Name) -> bool:
    """`out = attn(x, x, x)` of which only `out[0]` is read, with no other value under that name."""
    reads = _reads(file, call, target.id)
    bound = file.bindings(file.function(call), target.id)
    parents = [file.parents[read] for read in reads]
    return bool(reads) and len(bound) == 1 and all(isinstance(one, ast.Subscript) and _is_first(one) for one in parents)


def _is_first(subscript: ast.Subscript) -> bool:
    return isinstance(subscript.slice, ast.Constant) and subscript.slice.value == 0


def _reads(file: Outline, call: ast.Call, name: str) -> list[ast.Name]:
    nodes = find(file.function(call), ast.Name)
    return [node for node in nodes if node.id == name and isinstance(node.ctx, ast.Load)]


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("attn", "attention", "mha", _KIND)),
    required=True,
    cure=Cure(re.compile(r"\bneed_weights\s*=\s*False\b")),
)
