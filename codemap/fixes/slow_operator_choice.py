"""An operator with a cheaper equal: einsums that copy or multiply vectors, distances by absolute differences."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, DeviceFacts, Fixer
from .edits import Patch
from .expressions import in_brackets, stands_alone
from .imports import name_for
from .outline import Outline
from .scene import scene, searcher

_SLUG = "slow-operator-choice"


@dataclass(frozen=True, slots=True)
class _Rewrite:
    """The call to replace, and what by."""

    call: ast.Call
    text: str
    title: str
    function: str = ""
    """The function that is called with the text as its arguments; without one, the text is an expression."""
    is_closed: bool = False
    """Whether that expression needs no brackets among others."""


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    file = view.here.outline
    found = [one for call in view.here.calls() if (one := _rewrite(file, call, case.device)) is not None]
    if not found:
        return None
    first = file.statement(found[0].call)
    together = [one for one in found if file.statement(one.call) is first and not _is_within(file, one, found)]
    return Confirmation(file.location(first, case.location), (_fix(file, together, case.device),))


def _rewrite(file: Outline, call: ast.Call, device: DeviceFacts) -> _Rewrite | None:
    return _einsum(file, call) or (None if device.is_cpu else _distance(file, call))


def _is_within(file: Outline, one: _Rewrite, others: list[_Rewrite]) -> bool:
    """Whether a call is an operand of another one that is rewritten: then it keeps its turn for later."""
    calls = {id(other.call) for other in others}
    return any(id(above) in calls for above in file.ancestors(one.call))


def _fix(file: Outline, rewrites: list[_Rewrite], device: DeviceFacts) -> Fix:
    patch = Patch(file)
    for one in rewrites:
        if one.function:
            patch.replace(one.call, f"{name_for(patch, one.function)}({one.text})")
        else:
            stands = stands_alone(file, one.call) or one.is_closed
            patch.replace(one.call, one.text if stands else f"({one.text})")
    # Convolutions may use TF32 where matrix products do not.
    rounds = any(one.function for one in rewrites) and not device.is_cpu and device.capability >= (8, 0)
    return Fix(_SLUG, rewrites[0].title, Safety.UNSAFE if rounds else Safety.SAFE, patch.edits())


# einsum


@dataclass(frozen=True, slots=True)
class _Einsum:
    """`einsum("ab,bc->ac", first, second)`: the axes of its operands, "..." being one of them."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    out: tuple[str, ...]
    operands: tuple[ast.expr, ast.expr]


def _einsum(file: Outline, call: ast.Call) -> _Rewrite | None:
    found = _parsed(file, call)
    if found is None:
        return None
    swapped = _Einsum(found.second, found.first, found.out, (found.operands[1], found.operands[0]))
    return _sum_of_products(file, call, found) or _product(file, call, found) or _product(file, call, swapped)


def _parsed(file: Outline, call: ast.Call) -> _Einsum | None:
    if file.dotted(call.func) not in ("torch.einsum", "torch.functional.einsum") or call.keywords or not call.args:
        return None
    equation, *operands = call.args
    if len(operands) == 1 and isinstance(operands[0], ast.Tuple | ast.List):
        operands = operands[0].elts
    if not (isinstance(equation, ast.Constant) and isinstance(equation.value, str)) or len(operands) != 2:
        return None
    left, arrow, out = equation.value.replace(" ", "").partition("->")
    first, comma, second = left.partition(",")
    if not arrow or not comma or "," in second or any(isinstance(one, ast.Starred) for one in operands):
        return None
    axes = [_axes(part) for part in (first, second, out)]
    if any(len(set(part)) < len(part) for part in axes):
        return None
    return _Einsum(axes[0], axes[1], axes[2], (operands[0], operands[1]))


def _axes(part: str) -> tuple[str, ...]:
    before, dots, behind = part.partition("...")
    return (*before, *([dots] if dots else ()), *behind)


def _sum_of_products(file: Outline, call: ast.Call, found: _Einsum) -> _Rewrite | None:
    """`...k,...k->...`: the same axes in the same order, of which the last ones are summed."""
    summed = len(found.first) - len(found.out)
    if found.first != found.second or summed < 1 or found.first[: len(found.out)] != found.out or not found.out:
        return None
    first, second = (in_brackets(file, one) for one in found.operands)
    dims = "-1" if summed == 1 else f"({', '.join(str(-k) for k in range(summed, 0, -1))})"
    return _Rewrite(call, f"({first} * {second}).sum({dims})", "Multiply and sum instead of einsum", is_closed=True)


def _product(file: Outline, call: ast.Call, found: _Einsum) -> _Rewrite | None:
    """A tensor of any rank with a matrix: over its last axis, or over the channels of (batch, channels, positions)."""
    tensor, matrix, out = found.first, found.second, found.out
    rank = len(tensor)
    # Einsum of two matrices is their product already.
    if len(matrix) != 2 or "..." in matrix or rank + ("..." in tensor) < 3:
        return None
    contracted = [axis for axis in matrix if axis in tensor and axis not in out]
    if len(contracted) != 1:
        return None
    inner = contracted[0]
    new = matrix[0] if matrix[1] == inner else matrix[1]
    if new in tensor or out != tuple(new if axis == inner else axis for axis in tensor):
        return None
    x, w = (in_brackets(file, one) for one in found.operands)
    title = "Use the matrix product instead of einsum"
    if tensor[-1] == inner:
        return _Rewrite(call, f"{x} @ {w}" if matrix[0] == inner else f"{x} @ {w}.t()", title)
    if tensor[1] != inner or "..." in tensor or rank not in (3, 4, 5):
        return None
    # Channels mixed position by position: a convolution of width 1, which reads them where they are.
    w = w if matrix[1] == inner else f"{w}.t()"
    positions = rank - 2
    weight = f"{w}[:, :{', None' * positions}]"
    text = f"{file.segment(found.operands[0])}, {weight}"
    return _Rewrite(call, text, "Mix the channels by a 1x1 convolution", f"torch.nn.functional.conv{positions}d")


# cdist


def _distance(file: Outline, call: ast.Call) -> _Rewrite | None:
    """`torch.cdist(a, b, p=1)`."""
    if file.dotted(call.func) != "torch.cdist" or len(call.args) < 2:
        return None
    power = next((keyword.value for keyword in call.keywords if keyword.arg == "p"), None)
    power = power or (call.args[2] if len(call.args) > 2 else None)
    if not (isinstance(power, ast.Constant) and power.value == 1) or isinstance(power.value, bool):
        return None
    first, second = (in_brackets(file, one) for one in call.args[:2])
    text = f"({first}.unsqueeze(-2) - {second}.unsqueeze(-3)).abs().sum(-1)"
    return _Rewrite(call, text, "Sum the absolute differences", is_closed=True)


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, ("einsum(", "cdist(")), required=True)
