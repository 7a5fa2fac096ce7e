"""Gradients that are filled with zeros: `set_to_none=True`, or None put in their place."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Cure, Fixer
from .calls import edit_call
from .edits import Patch
from .outline import Outline, last_name
from .scene import scene, searcher
from .versions import is_older

_SLUG = "zero-grad-to-zero"
_CAPTURES = re.compile(r"CUDAGraph|cuda\.graph\(|make_graphed_callables|graph_capture", re.IGNORECASE)
_TITLE = "Drop the gradients instead of zeroing them (set_to_none=True)"


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    file, patch = view.here.outline, Patch(view.here.outline)
    for call in view.here.calls():
        if _is_zeroing(case, file, call):
            column = file.position(file.span(call)[0])[1] - 1
            changed = edit_call(file.segment(call), {"set_to_none": "True"}, column=column)
            if call.args:  # `zero_grad(False)`
                changed = edit_call(file.segment(call), {"set_to_none": "True"}, drop_positions=(0,), column=column)
            patch.replace(call, changed)
            break
        if (gradient := _zeroed_by_hand(call)) is not None and _is_statement(file, call):
            patch.replace(call, f"{file.segment(gradient)} = None")
            break
    else:
        return None
    if _CAPTURES.search(file.text):
        place = file.location(file.statement(call), case.location)
        return Confirmation(place, (), (), "a captured CUDA graph needs the gradients where they lie")
    # A parameter that got no gradient is passed over then, where one of zeros would still decay it.
    is_safe = not any(one.id == "unused" for one in case.finding.evidence)
    fix = Fix(_SLUG, _TITLE, Safety.SAFE if is_safe else Safety.UNSAFE, patch.edits())
    return Confirmation(file.location(file.statement(call), case.location), (fix,))


def _is_zeroing(case: Case, file: Outline, call: ast.Call) -> bool:
    """`zero_grad(set_to_none=False)`, or `zero_grad()` before that became the default."""
    if (
        last_name(call.func) != "zero_grad"
        or not isinstance(call.func, ast.Attribute)
        or file.dotted(call.func.value) == "super"
    ):
        return False
    said = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "set_to_none")]
    if any(keyword.arg is None for keyword in call.keywords) or len(said) > 1:
        return False
    if said:
        return isinstance(said[0], ast.Constant) and said[0].value is False
    version = case.device.torch_version
    return is_older(version, (2, 0)) and not is_older(version, (1, 7))


def _zeroed_by_hand(call: ast.Call) -> ast.expr | None:
    """The gradient of `p.grad.zero_()`, `p.grad.data.zero_()`, `p.grad.fill_(0)`."""
    if not isinstance(call.func, ast.Attribute) or call.keywords:
        return None
    is_zero = call.func.attr == "zero_" and not call.args
    is_fill = call.func.attr == "fill_" and [getattr(arg, "value", None) for arg in call.args] in ([0], [0.0])
    held = call.func.value
    while isinstance(held, ast.Attribute) and held.attr == "data":
        held = held.value
    is_gradient = isinstance(held, ast.Attribute) and held.attr == "grad"
    return held if (is_zero or is_fill) and is_gradient else None


def _is_statement(file: Outline, call: ast.Call) -> bool:
    return isinstance(file.parents[call], ast.Expr)


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("zero_grad(", ".grad.zero_(", ".grad.data.zero_(", ".grad.fill_(")),
    cure=Cure(re.compile(r"set_to_none\s*=\s*True|\.grad\s*=\s*None")),
)
