"""unfused-attention: softmax(q kᵀ) v written as separate operators.

Why it is slow: the scores, an N x N matrix per head, are written to memory and read back by the scale, the mask, the
softmax and the second product; the fused kernel keeps them on chip.
Trace: a batched product, then only pointwise operators, then a softmax of that product's result, then a batched
product that takes the softmax's result; no fused attention operator round them.
Edit: everything between the products goes, and the dense copies of operands inside them. The products stay. On the CPU
they run at about the rate of the fused kernels: measured with torch 2.13, one thread, the fused call takes 0.87-1.05 of
the two products (0.9 from N 256 on); below N 128 the softmax stays too (1.5 of the products at N 64), so 64 / N of it
is kept. The CPU's backward gains what the passes over the scores take (from N 128 on 0.62-0.9 of it all with heads of
32, 0.9-1.0 with 64), and loses below: 1.05-1.3, and 1.6-1.8 below N 16. On a device the fused kernel is
held to 40 % of the half-precision peak where the tensors are half, and never takes less than a launch nor more than
the products took.
Gate: `scaled_dot_product_attention`'s own math fallback (another pattern); products with a plain matrix (a
classifier's weights); on the CPU, dropout of the attention weights, which the fused kernels there cannot do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from ..findings import Evidence
from ..timeline.columns import distinct, is_among
from ..timeline.edit import Edit, Scale
from ..timeline.model import KernelClass, Timeline
from ..timeline.op_inputs import tensors
from ..timeline.select import (
    backward_of,
    backward_ops,
    count_per_step,
    events_of,
    in_typical_step,
    inside,
    launched_by,
    outermost,
    steady,
)
from ..timeline.sites import group_by_site
from ..trace.model import NONE, Category, Dims, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern

_PRODUCTS = frozenset({"aten::matmul", "aten::bmm", "aten::baddbmm", "aten::einsum", "aten::__matmul__"})
_SOFTMAX = frozenset({"aten::softmax", "aten::_softmax", "aten::_safe_softmax", "aten::special_softmax"})
_PROJECTIONS = frozenset({"aten::linear", "aten::addmm", "aten::mm"})
"""May stand between the softmax and the second product, which they make the values for."""
_FOREIGN = frozenset(
    {"aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::convolution"}
    | {"aten::layer_norm", "aten::batch_norm", "aten::group_norm"}
)
"""Operators that scores never go through."""
_DROPOUTS = frozenset({"aten::dropout", "aten::native_dropout", "aten::feature_dropout"})
_REACH = 24
_WHOLE_ATTENTION = "scaled_dot_product"

_CPU_TILE = 64
"""Query-key tile below which the CPU's fused kernel keeps the softmax's cost."""
_CPU_UNKNOWN_SOFTMAX = 0.25
_CPU_SMALL = 128
_CPU_SMALL_BACKWARD = 1.2
_CPU_TINY = 16
_CPU_TINY_BACKWARD = 1.7
_CPU_LARGE = 256
_CPU_LARGE_PRODUCTS = 0.9
_FUSED_PEAK_SHARE = 0.4
_FUSED_BACKWARD_PRODUCTS = 2.5
"""FLOPs of the fused backward over those of the forward: five products against two."""
_KERNEL_FLOOR_US = 5.0


@dataclass(frozen=True, slots=True)
class _Attention:
    """Operators of one attention call."""

    scores: int
    between: IntArray
    """Everything between the two products, the softmax included."""
    softmax: int
    values: int


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that computes attention in separate passes."""
    attentions = {attention.scores: attention for attention in _attentions(timeline)}
    if not attentions:
        return
    scores = np.array(sorted(attentions))
    passes_of = {row: _passes(timeline, attention) for row, attention in attentions.items()}
    backward = backward_ops(timeline)
    for anchors in group_by_site(timeline, scores):
        occurrences = tuple(
            _occurrence(timeline, attentions[row], passes_of[row], backward) for row in anchors.tolist()
        )
        passes = np.sort(np.concatenate([passes_of[row] for row in anchors.tolist()]))
        tokens = _tokens(timeline, attentions[int(anchors[0])])
        evidence = [
            Evidence(
                "passes",
                "operators of attention per step",
                count_per_step(timeline, passes),
                "",
                events_of(timeline, in_typical_step(timeline, passes)),
            )
        ]
        if tokens:
            evidence.append(Evidence("scores", "scores written and read back", "x".join(map(str, tokens)), "elements"))
        yield Candidate(
            what="attention runs as three passes",
            remedy="the fused call",
            occurrences=occurrences,
            evidence=tuple(evidence),
            probability=0.95 if tokens else 0.8,
        )


def _passes(timeline: Timeline, attention: _Attention) -> IntArray:
    """The two products, the softmax and what else works on the scores, in time order."""
    heavy = (attention.scores, attention.softmax, attention.values)
    return np.sort(np.concatenate([heavy, _on_scores(timeline, attention)]))


def _attentions(timeline: Timeline) -> Iterator[_Attention]:
    """Product, pointwise operators with one softmax, product: among neighbouring operators of one parent."""
    trace, tree = timeline.trace, timeline.tree
    softmax = outermost(timeline, steady(timeline, _named(timeline, _SOFTMAX)))
    softmax = [row for row in softmax.tolist() if not _in_whole_attention(timeline, row)]
    if not softmax:
        return
    top = _neighbours(timeline, np.array(softmax))
    position = {row: i for i, row in enumerate(top.tolist())}
    names = [trace.names[i] for i in trace.name[top].tolist()]
    for row in softmax:
        at = position[row]
        before, after = _nearest_product(names, at, -1), _nearest_product(names, at, +1)
        if before == NONE or after == NONE or trace.thread[top[before]] != trace.thread[top[after]]:
            continue
        attention = _Attention(int(top[before]), top[before + 1 : after], row, int(top[after]))
        if tree.op[attention.scores] == attention.scores and _fits(timeline, attention):
            yield attention


def _named(timeline: Timeline, names: frozenset[str]) -> IntArray:
    rows = timeline.trace.rows_named(tuple(names))
    return rows[timeline.trace.cat[rows] == Category.CPU_OP]


def _in_whole_attention(timeline: Timeline, row: int) -> bool:
    trace = timeline.trace
    return any(_WHOLE_ATTENTION in trace.name_of(outer) for outer in timeline.tree.ancestors(row))


def _neighbours(timeline: Timeline, softmax: IntArray) -> IntArray:
    """All steady operators at the softmaxes' own depth in the chain of operators, in order of thread and time."""
    trace, tree = timeline.trace, timeline.tree
    rows = steady(timeline, trace.rows(Category.CPU_OP))
    parent = tree.parent[rows]
    outer_op = np.where(parent != NONE, tree.op[np.maximum(parent, 0)], NONE)
    wanted_parent = tree.parent[softmax]
    wanted = distinct(np.where(wanted_parent != NONE, tree.op[np.maximum(wanted_parent, 0)], NONE))
    rows = rows[is_among(outer_op, wanted)]
    return rows[np.lexsort((trace.ts_ns[rows], trace.thread[rows]))]


def _nearest_product(names: list[str], at: int, step: int) -> int:
    """Index of the product nearest to `at` in one direction; NONE if something foreign to attention comes first."""
    foreign = _FOREIGN | _SOFTMAX | (_PROJECTIONS if step < 0 else frozenset())
    i = at + step
    while 0 <= i < len(names) and abs(i - at) <= _REACH:
        if names[i] in _PRODUCTS:
            return i
        if names[i] in foreign:
            return NONE
        i += step
    return NONE


def _fits(timeline: Timeline, attention: _Attention) -> bool:
    """Whether the recorded sizes allow it: batched products; the softmax has the size of the first one's result, and
    the second one takes the softmax's. True where sizes were not recorded.

    On the CPU, dropout of the weights rules the fused kernels out: PyTorch falls back to the same three passes.
    """
    if timeline.is_cpu_only and any(_drops(timeline, row) for row in attention.between.tolist()):
        return False
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


def _drops(timeline: Timeline, row: int) -> bool:
    """Whether a dropout operator drops anything: in evaluation it runs nothing."""
    return timeline.trace.name_of(row) in _DROPOUTS and len(timeline.tree.children(row)) > 0


def _on_scores(timeline: Timeline, attention: _Attention) -> IntArray:
    """The operators between the products, other than the softmax, that work on the scores."""
    size = prod(_tokens(timeline, attention))
    others = [row for row in attention.between.tolist() if row != attention.softmax]
    if timeline.trace.inputs[attention.softmax] == NONE:
        kept = [row for row in others if timeline.trace.name_of(row) not in _PROJECTIONS]
    else:
        kept = [row for row in others if any(prod(dims) == size for dims in _operands(timeline, row))]
    return np.array(kept, dtype=np.int64)


def _tokens(timeline: Timeline, attention: _Attention) -> tuple[int, ...]:
    return timeline.trace.inputs_of(attention.softmax).shape(0)


def _occurrence(timeline: Timeline, attention: _Attention, rows: IntArray, backward: IntArray) -> Occurrence:
    if timeline.is_cpu_only:
        cost_rows = np.sort(np.concatenate([rows, *backward_of(timeline, rows, backward)]))
        return Occurrence(attention.scores, _edit_on_cpu(timeline, attention, backward), cost_rows)
    return _on_device(timeline, attention, rows, backward)


def _edit_on_cpu(timeline: Timeline, attention: _Attention, backward: IntArray) -> Edit:
    tokens = _tokens(timeline, attention)
    kept = round(min(1.0, _CPU_TILE / tokens[-1]), 3) if tokens else _CPU_UNKNOWN_SOFTMAX
    scales = [Scale(np.array([attention.softmax]), kept)]
    if tokens and tokens[-1] >= _CPU_LARGE:
        scales.append(Scale(np.array([attention.scores, attention.values]), _CPU_LARGE_PRODUCTS))
    on_scores = _on_scores(timeline, attention)
    removed = [on_scores, _copies_in_products(timeline, attention)]
    if tokens and tokens[-1] < _CPU_SMALL:
        factor = _CPU_TINY_BACKWARD if tokens[-1] < _CPU_TINY else _CPU_SMALL_BACKWARD
        heavy = np.array([attention.scores, attention.softmax, attention.values])
        scales.append(Scale(np.concatenate(backward_of(timeline, heavy, backward)), factor))
    elif tokens:
        scales.append(Scale(np.concatenate(backward_of(timeline, np.array([attention.softmax]), backward)), kept))
        removed += backward_of(timeline, on_scores, backward)
    return Edit(scales=tuple(scales), removed_ops=np.sort(np.concatenate(removed)))


def _copies_in_products(timeline: Timeline, attention: _Attention) -> IntArray:
    """Copies that the products make of their operands first, to hand dense batches to the matrix routine."""
    copies = steady(timeline, timeline.trace.rows_named(("aten::contiguous", "aten::clone", "aten::copy_")))
    return outermost(timeline, copies[inside(timeline, copies, np.array([attention.scores, attention.values])) != NONE])


def _on_device(timeline: Timeline, attention: _Attention, rows: IntArray, backward: IntArray) -> Occurrence:
    trace = timeline.trace
    launched = launched_by(timeline, rows)
    scores, rest = launched[0], np.concatenate(launched[1:])
    caused = np.concatenate(backward_of(timeline, rows, backward))
    backward_device = np.concatenate(launched_by(timeline, caused)) if len(caused) else caused
    products_us = trace.dur_ns[_matrix(timeline, np.concatenate([scores, rest]))].sum() / 1000.0
    fused_us = _fused_us(timeline, attention, products_us)
    scales = [Scale(scores, _ratio(fused_us, trace.dur_ns[scores].sum() / 1000.0))]
    if len(backward_device):
        products_us = trace.dur_ns[_matrix(timeline, backward_device)].sum() / 1000.0
        fused_us = min(fused_us * _FUSED_BACKWARD_PRODUCTS, products_us)
        scales.append(Scale(backward_device, _ratio(fused_us, trace.dur_ns[backward_device].sum() / 1000.0)))
    edit = Edit(scales=tuple(scales), removed_ops=rows[rows != attention.scores])
    return Occurrence(attention.scores, edit, np.concatenate([scores, rest, backward_device]))


def _matrix(timeline: Timeline, device: IntArray) -> IntArray:
    return device[is_among(timeline.kernel_class[device], (KernelClass.GEMM_TENSOR_CORE, KernelClass.GEMM_SIMT))]


def _fused_us(timeline: Timeline, attention: _Attention, products_us: float) -> float:
    """Time of the fused forward kernel."""
    query, key = (timeline.trace.inputs_of(attention.scores).shape(i) for i in (0, 1))
    peak = timeline.device.half_tflops
    dtype = timeline.trace.inputs_of(attention.scores).dtype(0)
    if not query or not key or np.isnan(peak) or dtype not in ("c10::Half", "c10::BFloat16"):
        return products_us
    flops = 2 * 2 * prod(query) * key[-1]
    at_peak_us = flops / (peak * 1e12 * _FUSED_PEAK_SHARE) * 1e6
    return min(products_us, max(at_peak_us, _KERNEL_FLOOR_US))


def _ratio(wanted_us: float, recorded_us: float) -> float:
    return round(wanted_us / recorded_us, 2) if recorded_us > 0 else 1.0


PATTERN = Pattern(
    code="TAP601",
    slug="unfused-attention",
    title="Attention in separate passes",
    fix=FixKind.SAFE,
    find=find,
    needs=("launches",),
    group="attention_bottleneck",
)
