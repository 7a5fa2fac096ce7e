"""Einsum equations of attention, and the transposes that bring their operands into the fused call's order."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Equation:
    """`first,second->out`, one letter (or word, as einops writes them) per dimension."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    out: tuple[str, ...]


def parse_equation(call: ast.Call) -> Equation | None:
    """The equation of an `einsum` call with two operands; None for anything else, ellipses included."""
    if not call.args or not isinstance(call.args[0], ast.Constant) or not isinstance(call.args[0].value, str):
        return None
    text = call.args[0].value
    left, arrow, out = text.partition("->")
    operands = left.split(",")
    if not arrow or len(operands) != 2 or "..." in text:
        return None
    first, second, result = (_axes(part) for part in (*operands, out))
    return Equation(first, second, result)


def _axes(part: str) -> tuple[str, ...]:
    words = part.split()
    return tuple(words) if len(words) > 1 else tuple(part.strip())


@dataclass(frozen=True, slots=True)
class AxisOrder:
    """How the operands of hand-written attention lie against (batch..., rows, columns)."""

    q: tuple[int, ...]
    k: tuple[int, ...]
    v: tuple[int, ...]
    out: tuple[int, ...]
    """Permutations (as for `permute`) of q, k, v into the fused call's order, and of its result into the equation's."""


def axis_order(logits: Equation, product: Equation | None) -> AxisOrder | None:
    """The permutations for `logits` and `product` (None: a plain matrix product); None if it is no attention."""
    batch, row, column = logits.out[:-2], logits.out[-2], logits.out[-1]
    inner = [axis for axis in logits.first if axis in logits.second and axis not in logits.out]
    if len(inner) != 1 or len(logits.out) < 2:
        return None
    depth = inner[0]
    q = _order(logits.first, (*batch, row, depth))
    k = _order(logits.second, (*batch, column, depth))
    if q is None or k is None:
        return None
    if product is None:
        plain = tuple(range(len(logits.out)))
        return AxisOrder(q, k, plain, plain)
    if len(product.first) != len(logits.out):
        return None
    renamed = dict(zip(product.first, logits.out, strict=True))
    second = tuple(renamed.get(axis, axis + "'") for axis in product.second)
    out = tuple(renamed.get(axis, axis + "'") for axis in product.out)
    width = [axis for axis in second if axis not in logits.out]
    if len(width) != 1:
        return None
    v = _order(second, (*batch, column, width[0]))
    back = _order((*batch, row, width[0]), out)
    return None if v is None or back is None else AxisOrder(q, k, v, back)


def rearranged(text: str, order: Sequence[int]) -> str:
    """An operand's text with its dimensions in another order: nothing, one `transpose`, or a `permute`."""
    moved = [position for position, source in enumerate(order) if position != source]
    if not moved:
        return text
    if len(moved) == 2:
        return f"{text}.transpose({moved[0]}, {moved[1]})"
    return f"{text}.permute({', '.join(map(str, order))})"


def _order(axes: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[int, ...] | None:
    if sorted(axes) != sorted(wanted) or len(set(axes)) != len(axes):
        return None
    return tuple(axes.index(axis) for axis in wanted)
