"""Chains of elementwise operators: neighbours in one function that pass over tensors of the same size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..trace.model import NONE, Category, Dims, IntArray
from .model import Phase, Timeline
from .select import steady
from .sites import SiteFinder

_WORDS = (
    *("abs", "add", "sub", "rsub", "mul", "div", "true_divide", "neg", "reciprocal", "pow", "square", "sqrt", "rsqrt"),
    *(
        "exp",
        "exp2",
        "expm1",
        "log",
        "log1p",
        "log2",
        "erf",
        "sin",
        "cos",
        "tanh",
        "sigmoid",
        "softplus",
        "relu",
        "gelu",
    ),
    *("silu", "mish", "elu", "leaky_relu", "hardtanh", "hardswish", "hardsigmoid", "relu6", "clamp", "clamp_min"),
    *("clamp_max", "clip", "where", "masked_fill", "lerp", "addcmul", "addcdiv", "floor", "ceil", "round", "sign"),
    *(
        "maximum",
        "minimum",
        "fmod",
        "remainder",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "logical_and",
        "logical_or",
        "atan2",
    ),
    *("logical_not", "__and__", "__or__", "bitwise_and", "bitwise_or", "bitwise_not"),
)
_POINTWISE = frozenset(f"aten::{word}{end}" for word in _WORDS for end in ("", "_"))
_VIEWS = frozenset(
    f"aten::{word}"
    for word in ("unsqueeze", "squeeze", "slice", "select", "view", "expand", "expand_as", "alias", "detach")
)


@dataclass(frozen=True, slots=True)
class Chain:
    """Elementwise operators that one fused kernel could do."""

    rows: IntArray


def chains(timeline: Timeline, shortest: int) -> list[Chain]:
    """The chains of at least so many operators in the forward of the steady steps, in order of thread and time."""
    trace, tree = timeline.trace, timeline.tree
    if not any(name in _POINTWISE for name in trace.names):
        return []
    rows = steady(timeline, trace.rows(Category.CPU_OP))
    parent = tree.parent[rows]
    is_top = (parent == NONE) | (tree.op[np.maximum(parent, 0)] == NONE)
    rows = rows[is_top & (timeline.forward_op[rows] == NONE) & (timeline.phase[rows] != Phase.OPTIMIZER)]
    rows = rows[np.lexsort((trace.ts_ns[rows], trace.thread[rows]))]
    is_pointwise, is_view = (np.array([name in kind for name in trace.names]) for kind in (_POINTWISE, _VIEWS))
    rows = rows[~is_view[trace.name[rows]]]
    elementwise = is_pointwise[trace.name[rows]]
    elementwise[1:] &= (trace.thread[rows][1:] == trace.thread[rows][:-1]) | ~elementwise[:-1]
    bounds = np.flatnonzero(np.diff(np.concatenate([[False], elementwise, [False]])))
    finder = SiteFinder(timeline)
    found: list[Chain] = []
    for start, end in zip(bounds[::2].tolist(), bounds[1::2].tolist(), strict=True):
        if end - start >= shortest:
            found.extend(_parts(timeline, finder, rows[start:end], shortest))
    return found


def _parts(timeline: Timeline, finder: SiteFinder, run: IntArray, shortest: int) -> list[Chain]:
    """A run of elementwise operators, parted where the function, the thread or the size changes."""
    keys = [(finder.function(row), timeline.trace.thread[row], _size(timeline, row)) for row in run.tolist()]
    found: list[Chain] = []
    start = 0
    for at in range(1, len(run) + 1):
        if at == len(run) or not _go_together(keys[at - 1], keys[at]):
            if at - start >= shortest:
                found.append(Chain(run[start:at]))
            start = at
    return found


def _go_together(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return one[:2] == other[:2] and (one[2] is None or other[2] is None or one[2] == other[2])


def _size(timeline: Timeline, row: int) -> Dims | None:
    """Sizes of an operator's result, from its operands'; () for a single number, None where they were not recorded."""
    if timeline.trace.inputs[row] == NONE:
        return None
    inputs = timeline.trace.inputs_of(row)
    shapes = [inputs.shape(argument) for argument in range(min(len(inputs.dims), 3))]
    rank = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes if shape]
    return tuple(max(sizes) for sizes in zip(*padded, strict=True)) if padded else ()
