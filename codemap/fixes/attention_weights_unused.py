"""`nn.MultiheadAttention` asked for weights that nobody reads: `need_weights=False`."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Safety
from .attention_parts import given
from .base import Case, Confirmation, Cure, Fixer
from .calls import edit_call
from .edits import Patch
from .outline import Outline, last_name
from .resolve import Resolver, Value
from .scene import scene, searcher
from .second_result import drops_second

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
            if not _asks_for_weights(call) or not drops_second(file, call) or not _is_module(view.resolver, file, call):
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


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("attn", "attention", "mha", _KIND)),
    required=True,
    cure=Cure(re.compile(r"\bneed_weights\s*=\s*False\b")),
)
