"""Chains of elementwise operators: neighbours in one function that pass over tensors of the same size."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

import numpy as np

from ..trace.model import NONE, Category, Dims, IntArray, OpInputs
from .edit import no_rows
from .memo import once
from .model import Phase, Timeline
from .op_inputs import of_each
from .select import backward_of, launched_by, steady
from .sites import SiteFinder

_SHORTEST = 2
_POINTWISE = re.compile(
    r"aten::("
    r"abs|add|sub|rsub|mul|div|true_divide|neg|reciprocal|pow|square|sqrt|rsqrt|exp|exp2|expm1|log|log1p|log2|erf"
    r"|sin|cos|tanh|sigmoid|softplus|relu|gelu|silu|mish|elu|leaky_relu|hardtanh|hardswish|hardsigmoid|relu6|clamp"
    r"|clamp_min|clamp_max|clip|where|masked_fill|lerp|addcmul|addcdiv|floor|ceil|round|sign|maximum|minimum|fmod"
    r"|remainder|eq|ne|lt|le|gt|ge|logical_and|logical_or|atan2|logical_not|__and__|__or__|bitwise_and|bitwise_or"
    r"|bitwise_not"
    r")_?"
)
_VIEWS = frozenset(
    f"aten::{word}"
    for word in ("unsqueeze", "squeeze", "slice", "select", "view", "expand", "expand_as", "alias", "detach")
)


@dataclass(frozen=True, slots=True)
class Chain:
    """Elementwise operators that one fused kernel could do."""

    rows: IntArray
    hosts: IntArray
    """They and the backward operators that they cause, in time order."""
    device: IntArray
    """The device work that all of these launch."""


@once
def chains(timeline: Timeline) -> list[Chain]:
    """The chains of two operators or more in the forward of the steady steps, in order of thread and time."""
    trace, tree = timeline.trace, timeline.tree
    if not any(map(_POINTWISE.fullmatch, trace.names)):
        return []
    rows = steady(timeline, trace.rows(Category.CPU_OP))
    parent = tree.parent[rows]
    is_top = (parent == NONE) | (tree.op[np.maximum(parent, 0)] == NONE)
    rows = rows[is_top & (timeline.forward_op[rows] == NONE) & (timeline.phase[rows] != Phase.OPTIMIZER)]
    rows = rows[np.lexsort((trace.ts_ns[rows], trace.thread[rows]))]
    is_pointwise = np.array([_POINTWISE.fullmatch(name) is not None for name in trace.names])
    is_view = np.array([name in _VIEWS for name in trace.names])
    rows = rows[~is_view[trace.name[rows]]]
    elementwise = is_pointwise[trace.name[rows]]
    elementwise[1:] &= (trace.thread[rows][1:] == trace.thread[rows][:-1]) | ~elementwise[:-1]
    bounds = np.flatnonzero(np.diff(np.concatenate([[False], elementwise, [False]])))
    spans = [
        span for span in zip(bounds[::2].tolist(), bounds[1::2].tolist(), strict=True) if span[1] - span[0] >= _SHORTEST
    ]
    finder = SiteFinder(timeline)
    sizes = iter(of_each(trace, np.concatenate([no_rows(), *(rows[start:end] for start, end in spans)]), _size))
    found: list[IntArray] = []
    for start, end in spans:
        found.extend(_parts(timeline, finder, rows[start:end], list(islice(sizes, end - start))))
    return _with_work(timeline, found)


def _with_work(timeline: Timeline, found: list[IntArray]) -> list[Chain]:
    """Runs of operators with the work that they cause, looked up for all of them at once."""
    if not found:
        return []
    rows = np.concatenate(found)
    lengths = [len(run) for run in found]
    hosts = [
        np.sort(np.concatenate([run, *behind]))
        for run, behind in zip(found, _parted(backward_of(timeline, rows), lengths), strict=True)
    ]
    launched = _parted(launched_by(timeline, np.concatenate(hosts)), [len(run) for run in hosts])
    device = [np.sort(np.concatenate([no_rows(), *rows])) for rows in launched]
    return [Chain(*parts) for parts in zip(found, hosts, device, strict=True)]


def _parted(each: list[IntArray], lengths: list[int]) -> list[list[IntArray]]:
    """A list as lists of these lengths."""
    remaining = iter(each)
    return [list(islice(remaining, length)) for length in lengths]


def _parts(timeline: Timeline, finder: SiteFinder, run: IntArray, sizes: list[Dims | None]) -> list[IntArray]:
    """A run of elementwise operators, parted where the function, the thread or the size changes."""
    functions = [finder.function(row) for row in run.tolist()]
    keys = list(zip(functions, timeline.trace.thread[run].tolist(), sizes, strict=True))
    found: list[IntArray] = []
    start = 0
    for at in range(1, len(run) + 1):
        if at == len(run) or not _go_together(keys[at - 1], keys[at]):
            if at - start >= _SHORTEST:
                found.append(run[start:at])
            start = at
    return found


def _go_together(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return one[:2] == other[:2] and (one[2] is None or other[2] is None or one[2] == other[2])


def _size(inputs: OpInputs) -> Dims | None:
    """Sizes of an operator's result, from its operands'; () for a single number, None where they were not recorded."""
    if not inputs.dims:
        return None
    shapes = [inputs.shape(argument) for argument in range(min(len(inputs.dims), 3))]
    rank = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes if shape]
    return tuple(max(sizes) for sizes in zip(*padded, strict=True)) if padded else ()
