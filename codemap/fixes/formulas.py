"""Recognises what an expression computes: an activation, a norm or a softmax, by its values at sample points."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import permutations

import numpy as np

from ...analyzer.trace.model import FloatArray
from .numeric import EPSILON, UnknownError
from .outline import Outline, last_name
from .reading import Leaf, Reading
from .resolve import Resolver, Value
from .straight import Block

_SHAPES = ((2, 3, 5), (2, 6, 4, 5))
_MOST_OPERANDS = 3


@dataclass(frozen=True, slots=True)
class Formula:
    """A function of the library."""

    function: str
    compute: Callable[[FloatArray], FloatArray]
    """Its values; for a norm, before weight and bias."""
    since: tuple[int, int] = (1, 0)
    axis: int | None = None
    """The axis it works along: -1, or 1 for channels; None for an elementwise one."""
    is_norm: bool = False
    option: str = ""
    """A further argument."""
    is_dense: bool = True
    """Whether the result lies in memory as the written-out one's."""


class Layout(Enum):
    """How weight and bias lie."""

    NONE = 0
    """There are none."""
    VECTOR = 1
    IMAGE = 2
    """(1, channels, 1, 1)."""
    ASSUMED = 3
    """Taken for vectors; where they were made is out of sight."""
    OTHER = 4


Operands = tuple[ast.expr, ast.expr | None, ast.expr | None]
"""The tensor, the weight, the bias."""


@dataclass(frozen=True, slots=True)
class Match:
    """A formula with the program's own operands."""

    formula: Formula
    tensor: ast.expr
    weight: ast.expr | None
    bias: ast.expr | None
    epsilon: ast.expr | None
    layout: Layout
    through: tuple[ast.Assign, ...]
    """The assignments whose values the expression took, in the order of the text."""
    leaves: tuple[Leaf, ...]
    is_pure: bool
    """Whether nothing in between converts types or writes into an operand."""


def _layer_norm(axis: int) -> Callable[[FloatArray], FloatArray]:
    def compute(x: FloatArray) -> FloatArray:
        centred = x - x.mean(axis=axis, keepdims=True)
        return centred / np.sqrt((centred**2).mean(axis=axis, keepdims=True) + EPSILON)

    return compute


def _rms_norm(x: FloatArray) -> FloatArray:
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + EPSILON)


def _softmax(axis: int) -> Callable[[FloatArray], FloatArray]:
    def compute(x: FloatArray) -> FloatArray:
        powers = np.exp(x)
        return powers / powers.sum(axis=axis, keepdims=True)

    return compute


def _gelu(x: FloatArray) -> FloatArray:
    return 0.5 * x * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2)))


def _gelu_tanh(x: FloatArray) -> FloatArray:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


_F = "torch.nn.functional."
_FORMULAS = (
    Formula(_F + "gelu", _gelu),
    Formula(_F + "gelu", _gelu_tanh, (1, 12), option='approximate="tanh"'),
    Formula(_F + "silu", lambda x: x / (1 + np.exp(-x)), (1, 7)),
    Formula(_F + "mish", lambda x: x * np.tanh(np.logaddexp(0.0, x)), (1, 9)),
    Formula(_F + "hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6, (1, 6)),
    Formula(_F + "hardsigmoid", lambda x: np.clip(x + 3, 0, 6) / 6, (1, 6)),
    Formula(_F + "softmax", _softmax(-1), axis=-1),
    Formula(_F + "softmax", _softmax(1), axis=1),
    Formula(_F + "layer_norm", _layer_norm(-1), axis=-1, is_norm=True),
    Formula(_F + "layer_norm", _layer_norm(1), axis=1, is_norm=True, is_dense=False),
    Formula(_F + "rms_norm", _rms_norm, (2, 9), axis=-1, is_norm=True),
)


def recognise(resolver: Resolver, value: Value, block: Block) -> Match | None:
    """The formula that an expression computes, taking names from the assignments above it in its block."""
    reading = Reading(resolver, value.outline, block)
    try:
        reading.read(value.node, 0)
    except UnknownError:
        return None
    leaves = [leaf for leaf in reading.leaves.values() if leaf is not reading.epsilon]
    if not reading.is_plausible or not 1 <= len(leaves) <= _MOST_OPERANDS:
        return None
    known: dict[ast.expr, Layout] = {}
    for operands in _roles(leaves):
        parameters = [one for one in operands[1:] if one is not None]
        known |= {one: _layout(resolver, value.outline, one) for one in parameters if one not in known}
        layouts = {known[one] for one in parameters}
        if len(layouts) > 1 or Layout.OTHER in layouts:
            continue
        layout = next(iter(layouts), Layout.NONE)
        for formula in _FORMULAS:
            if not formula.is_norm and (layout is not Layout.NONE or reading.epsilon is not None):
                continue
            effects = _effects(reading, value.node, formula, operands, layout)
            if effects is not None:
                through = tuple(sorted(reading.assignments, key=lambda one: one.lineno))
                leaves_read = tuple(reading.leaves)
                return Match(formula, *operands, reading.epsilon, layout, through, leaves_read, not effects)
    return None


def _layout(resolver: Resolver, outline: Outline, parameter: ast.expr) -> Layout:
    """How a weight or bias lies, by the sizes that it was made with."""
    made = resolver.find(
        Value(outline, parameter), lambda one: isinstance(one.node, ast.Call) and _is_filled(one), _keeps_layout
    )
    layouts = {_layout_of(one.node) for one in made if isinstance(one.node, ast.Call)}
    return Layout.ASSUMED if not layouts else layouts.pop() if len(layouts) == 1 else Layout.OTHER


def _keeps_layout(value: Value) -> bool:
    """Whether what an expression is made of lies as it does: a view or a part of a parameter lies otherwise."""
    if isinstance(value.node, ast.Call):
        return last_name(value.node.func) in ("Parameter", "Buffer", "to", "clone", "requires_grad_")
    return not isinstance(value.node, ast.Subscript)


def _is_filled(value: Value) -> bool:
    return value.outline.dotted(getattr(value.node, "func", value.node)) in (
        *("torch.ones", "torch.zeros", "torch.empty", "torch.randn", "torch.rand", "torch.full"),
        *("torch.Tensor", "torch.FloatTensor"),
    )


def _layout_of(call: ast.Call) -> Layout:
    sizes = call.args[0].elts if len(call.args) >= 1 and isinstance(call.args[0], ast.Tuple | ast.List) else call.args
    is_one = [isinstance(size, ast.Constant) and size.value == 1 for size in sizes]
    if is_one == [False] and not isinstance(sizes[0], ast.Starred):
        return Layout.VECTOR
    return Layout.IMAGE if is_one == [True, False, True, True] else Layout.OTHER


def _roles(leaves: Sequence[ast.expr]) -> Iterator[Operands]:
    """Every way to take one operand for the tensor, and the others, if any, for weight and bias."""
    for tensor in leaves:
        others = [leaf for leaf in leaves if leaf is not tensor]
        if isinstance(tensor, ast.Attribute) and others:
            continue  # parameters are attributes, what they are applied to is not
        for weight, bias in permutations([*others, None, None], 2):
            if {id(one) for one in others} <= {id(weight), id(bias)}:
                yield tensor, weight, bias


def _effects(
    reading: Reading, node: ast.expr, formula: Formula, operands: Operands, layout: Layout
) -> list[ast.Call] | None:
    """The calls with effects in an expression that computes a formula at sample points; None if it does not."""
    effects: list[ast.Call] = []
    matched = 0
    for shape in _SHAPES:
        sample = _Sample.of(shape, formula)
        evaluator = reading.evaluator(sample.values(operands, layout))
        try:
            with np.errstate(all="ignore"):
                got = np.asarray(evaluator.of(node))
        except UnknownError:
            continue
        wanted = sample.expected(formula, operands)
        if got.shape != wanted.shape or not np.allclose(got, wanted, rtol=1e-9, atol=1e-9):
            return None
        matched += 1
        effects = evaluator.effects
    # Parameters along an axis tell how many there are; without them `dim=1` may stand in any rank.
    is_told = layout is not Layout.NONE or (matched == len(_SHAPES) and not (formula.is_norm and formula.axis == 1))
    return effects if matched and is_told else None


@dataclass(frozen=True, slots=True)
class _Sample:
    """Random operands: a tensor, and a weight and a bias along a formula's axis."""

    tensor: FloatArray
    weight: FloatArray
    bias: FloatArray
    axis: int

    @staticmethod
    def of(shape: tuple[int, ...], formula: Formula) -> _Sample:
        random = np.random.default_rng(len(shape))
        axis = -1 if formula.axis is None else formula.axis
        weight, bias = random.standard_normal((2, shape[axis]))
        return _Sample(3 * random.standard_normal(shape), weight, bias, axis)

    def values(self, operands: Operands, layout: Layout) -> dict[int, FloatArray]:
        """The sample of each operand, by the operand's identity."""
        parameters = [self.weight, self.bias]
        if layout is Layout.IMAGE:
            parameters = [one.reshape(1, -1, 1, 1) for one in parameters]
        held = (self.tensor, *parameters)
        return {id(leaf): value for leaf, value in zip(operands, held, strict=True) if leaf is not None}

    def expected(self, formula: Formula, operands: Operands) -> FloatArray:
        """What the formula gives."""
        result = formula.compute(self.tensor)
        along = [1] * self.tensor.ndim
        along[self.axis] = -1
        if operands[1] is not None:
            result = result * self.weight.reshape(along)
        return result + self.bias.reshape(along) if operands[2] is not None else result
