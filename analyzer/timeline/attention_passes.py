"""Attention written as separate operators: a batched product, a softmax of its result, a product with that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from ..trace.model import NONE, Category, Dims, IntArray
from .columns import distinct, is_among
from .memo import once
from .model import Timeline
from .op_inputs import tensors
from .select import outermost, steady

_PRODUCTS = frozenset({"aten::matmul", "aten::bmm", "aten::baddbmm", "aten::einsum", "aten::__matmul__"})
_SOFTMAX = frozenset({"aten::softmax", "aten::_softmax", "aten::_safe_softmax", "aten::special_softmax"})
_PROJECTIONS = frozenset({"aten::linear", "aten::addmm", "aten::mm"})
"""May stand between the products, to make the values, or a bias."""
_FOREIGN = frozenset(
    {"aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::convolution"}
    | {"aten::layer_norm", "aten::batch_norm", "aten::group_norm"}
)
"""Operators that scores never go through."""
_DROPOUTS = frozenset({"aten::dropout", "aten::native_dropout", "aten::feature_dropout"})
_REACH = 24
_WHOLE_ATTENTION = "scaled_dot_product"
_NATIVE_MULTIHEAD = "aten::_native_multi_head_attention"
_MULTIHEAD = "multi_head_attention_forward"


@dataclass(frozen=True, slots=True)
class Passes:
    """Operators of one attention call."""

    scores: int
    between: IntArray
    """Everything between the two products, the softmax included."""
    softmax: int
    values: int


@once
def attention_passes(timeline: Timeline) -> list[Passes]:
    """Product, pointwise operators with one softmax, product: among neighbouring operators of one parent."""
    return list(_passes(timeline))


def _passes(timeline: Timeline) -> Iterator[Passes]:
    trace, tree = timeline.trace, timeline.tree
    softmax = outermost(timeline, steady(timeline, _named(timeline, _SOFTMAX)))
    softmax = [row for row in softmax.tolist() if not _in_whole_attention(timeline, row)]
    if not softmax:
        return
    top = neighbours(timeline, np.array(softmax))
    position = {row: i for i, row in enumerate(top.tolist())}
    names = [trace.names[i] for i in trace.name[top].tolist()]
    for row in softmax:
        at = position[row]
        is_sized = len(trace.inputs_of(row).shape(0)) > 0
        before = _nearest_product(names, at, -1, skips_layers=is_sized)
        after = _nearest_product(names, at, +1, skips_layers=True)
        if before == NONE or after == NONE or trace.thread[top[before]] != trace.thread[top[after]]:
            continue
        attention = Passes(int(top[before]), top[before + 1 : after], row, int(top[after]))
        if tree.op[attention.scores] == attention.scores and _fits(timeline, attention):
            yield attention


def _named(timeline: Timeline, names: frozenset[str]) -> IntArray:
    rows = timeline.trace.rows_named(tuple(names))
    return rows[timeline.trace.cat[rows] == Category.CPU_OP]


def _in_whole_attention(timeline: Timeline, row: int) -> bool:
    trace = timeline.trace
    return any(_WHOLE_ATTENTION in trace.name_of(outer) for outer in timeline.tree.ancestors(row))


def neighbours(timeline: Timeline, rows_like: IntArray) -> IntArray:
    """All steady operators at the given ones' own depth in the chain of operators, in order of thread and time."""
    trace, tree = timeline.trace, timeline.tree
    rows = steady(timeline, trace.rows(Category.CPU_OP))
    parent = tree.parent[rows]
    outer_op = np.where(parent != NONE, tree.op[np.maximum(parent, 0)], NONE)
    wanted_parent = tree.parent[rows_like]
    wanted = distinct(np.where(wanted_parent != NONE, tree.op[np.maximum(wanted_parent, 0)], NONE))
    rows = rows[is_among(outer_op, wanted)]
    return rows[np.lexsort((trace.ts_ns[rows], trace.thread[rows]))]


def _nearest_product(names: list[str], at: int, step: int, *, skips_layers: bool) -> int:
    """Index of the product nearest to `at` in one direction; NONE if something foreign to attention comes first.

    Layers may make the values between the softmax and the second product, or a bias (Swin v2's, from a small network)
    before the softmax: there only sizes can tell them from layers of something else.
    """
    foreign = _FOREIGN | _SOFTMAX | (frozenset() if skips_layers else _PROJECTIONS)
    i = at + step
    while 0 <= i < len(names) and abs(i - at) <= _REACH:
        if names[i] in _PRODUCTS:
            return i
        if names[i] in foreign:
            return NONE
        i += step
    return NONE


def _fits(timeline: Timeline, attention: Passes) -> bool:
    """Whether the recorded sizes allow it: batched products; the softmax has the size of the first one's result, and
    the second one takes the softmax's. True where sizes were not recorded.
    """
    weights = timeline.trace.inputs_of(attention.softmax).shape(0)
    factors, uses = _operands(timeline, attention.scores), _operands(timeline, attention.values)
    if not weights or len(factors) < 2 or not uses:
        return True
    if len(weights) < 3 or any(len(shape) < 3 for shape in factors):
        return False
    rows, columns = weights[-2:]
    query, key = factors[-2:]
    made = {rows, columns} <= {*query, *key}
    if timeline.trace.name_of(attention.scores) != "aten::einsum":
        made = prod(query[:-1]) * key[-1] == prod(weights)
    return made and any(prod(shape) == prod(weights) and set(shape[-2:]) == {rows, columns} for shape in uses)


def _operands(timeline: Timeline, row: int) -> list[Dims]:
    """Sizes of an operator's tensor arguments, those in lists included."""
    return [dims for _, dims in tensors(timeline.trace.inputs_of(row)) if dims]


def drops_weights(timeline: Timeline, attention: Passes) -> bool:
    """Whether weights are dropped out; in evaluation a dropout operator runs nothing."""
    trace, tree = timeline.trace, timeline.tree
    between = attention.between.tolist()
    return any(trace.name_of(row) in _DROPOUTS and len(tree.children(row)) > 0 for row in between)


def rows_of(timeline: Timeline, attention: Passes) -> IntArray:
    """The two products, the softmax and what else works on the scores, in time order."""
    heavy = (attention.scores, attention.softmax, attention.values)
    return np.sort(np.concatenate([heavy, on_scores(timeline, attention)]))


def on_scores(timeline: Timeline, attention: Passes) -> IntArray:
    """The operators between the products, other than the softmax, that work on the scores."""
    size = prod(scores_size(timeline, attention))
    others = [row for row in attention.between.tolist() if row != attention.softmax]
    if timeline.trace.inputs[attention.softmax] == NONE:
        kept = [row for row in others if timeline.trace.name_of(row) not in _PROJECTIONS]
    else:
        kept = [row for row in others if any(prod(dims) == size for dims in _operands(timeline, row))]
    return np.array(kept, dtype=np.int64)


def scores_size(timeline: Timeline, attention: Passes) -> Dims:
    """Sizes of the score matrix; () where they were not recorded."""
    return timeline.trace.inputs_of(attention.softmax).shape(0)


def average_of_weights(timeline: Timeline, attention: Passes) -> int:
    """The operator soon behind the attention that averages its weights over the heads; NONE if there is none."""
    trace = timeline.trace
    size = scores_size(timeline, attention)
    means = steady(timeline, trace.rows_named(("aten::mean", "aten::sum")))
    start = trace.ts_ns[attention.values]
    behind = means[(trace.thread[means] == trace.thread[attention.values]) & (trace.ts_ns[means] > start)][:1]
    for row in behind.tolist():
        averaged = trace.inputs_of(row).shape(0)
        if size and len(averaged) == 4 and prod(averaged) == prod(size) and averaged[-2:] == size[-2:]:
            return row
    return NONE


def is_multihead_module(timeline: Timeline, attention: Passes) -> bool:
    """Whether the attention is `nn.MultiheadAttention`'s own, asked for its weights.

    Where no frames were recorded, the average over heads that the module makes of them tells.
    """
    trace, tree = timeline.trace, timeline.tree
    if is_native_multihead(timeline, attention):
        return True
    if tree.python[attention.scores] == NONE and not trace.stack_of(attention.scores):
        return average_of_weights(timeline, attention) != NONE
    frames = (trace.name_of(outer) for outer in tree.ancestors(attention.scores))
    return any(_MULTIHEAD in frame for frame in (*frames, trace.stack_of(attention.scores)))


def is_native_multihead(timeline: Timeline, attention: Passes) -> bool:
    """Whether the attention is computed inside the one operator that the module's fast path calls in evaluation."""
    outer = timeline.tree.ancestors(attention.scores)
    return any(timeline.trace.name_of(row) == _NATIVE_MULTIHEAD for row in outer)
