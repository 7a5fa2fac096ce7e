"""FLOPs and bytes of operators, from recorded shapes and types.

A call is costed where it computes: of nested operators that stand for the same work (`aten::linear` > `aten::addmm`,
`aten::conv2d` > `aten::convolution` > `aten::cudnn_convolution`) only the innermost has a figure, so sums never count
work twice. A multiply-add is two FLOPs. Bytes are the least that has to move: every input read and every output written
once.
"""

from __future__ import annotations

import numpy as np

from ..trace.model import BoolArray, Category, IntArray, Trace
from .columns import is_named
from .convolution_costs import ShapeHints
from .cost_rules import cost_of, has_rule
from .model import OpCosts
from .op_inputs import Cost


def op_costs(trace: Trace) -> OpCosts:
    """Costs of every operator row, shape (n,); NaN where shapes are missing, or where an inner operator has them.

    Each distinct (name, inputs) pair is worked out once.
    """
    flops = np.full(len(trace), np.nan)
    moved = np.full(len(trace), np.nan)
    rows = trace.rows(Category.CPU_OP)
    rows = rows[trace.inputs[rows] >= 0]
    rows = rows[is_named(trace, rows, has_rule)]
    if len(rows) == 0:
        return OpCosts(flops, moved)
    pairs = trace.name[rows].astype(np.int64) * (int(trace.inputs.max()) + 1) + trace.inputs[rows]
    _, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
    calls = [(trace.name_of(row), trace.inputs_of(row)) for row in rows[first].tolist()]
    hints = ShapeHints.of(calls)
    costs = [cost_of(name, inputs, hints) for name, inputs in calls]
    found = np.array([cost is not None for cost in costs], dtype=bool)[inverse]
    rows, inverse = rows[found], inverse[found]
    heavy = np.array([cost is not None and cost.heavy for cost in costs], dtype=bool)[inverse]
    innermost = ~_encloses_same_work(trace, rows, heavy)
    rows, inverse = rows[innermost], inverse[innermost]
    flops[rows] = np.array([_flops(cost) for cost in costs])[inverse]
    moved[rows] = np.array([_bytes(cost) for cost in costs])[inverse]
    return OpCosts(flops, moved)


def _flops(cost: Cost | None) -> float:
    return cost.flops if cost else np.nan


def _bytes(cost: Cost | None) -> float:
    return cost.bytes if cost else np.nan


def _encloses_same_work(trace: Trace, rows: IntArray, heavy: BoolArray) -> BoolArray:
    """Which of `rows` (in time order) enclose another costed row that does their work.

    A matrix operator is stood for by an inner matrix operator only: the bias sum inside a convolution's backward is
    work of its own. Anything else is stood for by any costed operator inside it.
    """
    encloses = np.zeros(len(rows), dtype=bool)
    encloses |= _has_inner(trace, rows) & ~heavy
    positions = np.flatnonzero(heavy)
    encloses[positions] |= _has_inner(trace, rows[positions])
    return encloses


def _has_inner(trace: Trace, rows: IntArray) -> BoolArray:
    """Whether the next of `rows` on the same thread begins before each one ends."""
    order = np.argsort(trace.thread[rows], kind="stable")
    ordered = rows[order]
    inner = np.zeros(len(rows), dtype=bool)
    following = ordered[1:]
    same_thread = trace.thread[ordered[:-1]] == trace.thread[following]
    inner[order[:-1]] = same_thread & (trace.ts_ns[following] < trace.end_ns[ordered[:-1]])
    return inner
