"""unfused-attention: softmax(q kᵀ) v written as separate operators.

Why it is slow: the scores, an N x N matrix per head, are written to memory and read back by the scale, the mask, the
softmax and the second product; the fused kernel keeps them on chip.
Trace: a batched product, then only pointwise operators, then a softmax of that product's result, then a batched
product that takes the softmax's result; no fused attention operator round them.
Edit: everything between the products goes. The products stay: as recorded on the CPU, where fused kernels reach the
same rate (measured with torch 2.13, one thread, N 128-1024, head 32-80: the fused call takes 0.87-1.05 of the two
products; below, the softmax stays too: 1.5 of the products at N 64, so the softmax is kept by 64 / N). Backward on the
CPU gains nothing (0.86-1.06), and loses up to 1.3 below N 128. On a device the fused kernel is held to 40 % of the
half-precision peak where the tensors are half, and never takes less than a launch nor more than the products took.
Gate: `scaled_dot_product_attention`'s own math fallback (another pattern).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from ..findings import Evidence
from ..timeline.edit import Edit, Scale
from ..timeline.model import KernelClass, Timeline
from ..timeline.select import (
    backward_of,
    count_per_step,
    events_of,
    in_typical_step,
    launched_by,
    outermost,
    steady,
)
from ..timeline.sites import group_by_site
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern

_PRODUCTS = frozenset({"aten::matmul", "aten::bmm", "aten::baddbmm", "aten::einsum", "aten::__matmul__"})
_SOFTMAX = frozenset({"aten::softmax", "aten::_softmax", "aten::_safe_softmax", "aten::special_softmax"})
_BARRIERS = frozenset(
    {"aten::linear", "aten::addmm", "aten::mm", "aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::convolution"}
    | {"aten::layer_norm", "aten::batch_norm", "aten::group_norm"}
)
"""Operators that end an attention: its scores never go through these."""
_WHOLE_ATTENTION = "scaled_dot_product"

_CPU_TILE = 64
"""Query-key tile below which the CPU's fused kernel keeps the softmax's cost."""
_CPU_SMALL = 128
_CPU_SMALL_BACKWARD = 1.2
_FUSED_PEAK_SHARE = 0.4
_FUSED_BACKWARD_PRODUCTS = 2.5
"""FLOPs of the fused backward over those of the forward: five products against two."""
_KERNEL_FLOOR_US = 5.0


@dataclass(frozen=True, slots=True)
class _Attention:
    """Rows of one attention call, in time order."""

    scores: int
    between: IntArray
    softmax: int
    values: int

    @property
    def rows(self) -> IntArray:
        """Every operator of the call."""
        return np.array([self.scores, *self.between.tolist(), self.values])


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that computes attention in separate passes."""
    attentions = {attention.scores: attention for attention in _attentions(timeline)}
    if not attentions:
        return
    scores = np.array(sorted(attentions))
    for anchors in group_by_site(timeline, scores):
        chosen = [attentions[row] for row in anchors.tolist()]
        occurrences = _occurrences(timeline, chosen)
        tokens = _tokens(timeline, chosen[0])
        evidence = [
            Evidence(
                "passes",
                "operators of attention per step",
                count_per_step(timeline, np.concatenate([attention.rows for attention in chosen])),
                "",
                events_of(timeline, in_typical_step(timeline, np.concatenate([a.rows for a in chosen]))),
            ),
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
        before = _nearest_product(names, at, -1)
        after = _nearest_product(names, at, +1)
        if before == NONE or after == NONE or trace.thread[top[before]] != trace.thread[top[after]]:
            continue
        inner = top[before + 1 : after]
        attention = _Attention(int(top[before]), inner[inner != NONE], row, int(top[after]))
        if _shapes_fit(timeline, attention) and tree.op[attention.scores] == attention.scores:
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
    wanted = np.unique(np.where(wanted_parent != NONE, tree.op[np.maximum(wanted_parent, 0)], NONE))
    rows = rows[np.isin(outer_op, wanted)]
    return rows[np.lexsort((trace.ts_ns[rows], trace.thread[rows]))]


def _nearest_product(names: list[str], at: int, step: int) -> int:
    """Index of the product nearest to `at` in one direction; NONE if something foreign to attention comes first."""
    reach = 24
    i = at + step
    while 0 <= i < len(names) and abs(i - at) <= reach:
        if names[i] in _PRODUCTS:
            return i
        if names[i] in _BARRIERS or names[i] in _SOFTMAX:
            return NONE
        i += step
    return NONE


def _shapes_fit(timeline: Timeline, attention: _Attention) -> bool:
    """Whether the recorded sizes allow it: the softmax has the size of the product's result, and feeds the second one.

    True where nothing was recorded.
    """
    trace = timeline.trace
    softmax = trace.inputs_of(attention.softmax).shape(0)
    query, key = (trace.inputs_of(attention.scores).shape(i) for i in (0, 1))
    if not softmax or not query or not key:
        return len(query) != 2 or len(key) != 2
    weights = [trace.inputs_of(attention.values).shape(i) for i in (0, 1)]
    rows, columns = softmax[-2:] if len(softmax) > 1 else (0, 0)
    produced = prod(query[:-1]) * key[-1]
    return (
        len(softmax) >= 3
        and produced == prod(softmax)
        and any(
            len(shape) >= 2 and set(shape[-2:]) == {rows, columns} and prod(shape) == prod(softmax) for shape in weights
        )
    )


def _tokens(timeline: Timeline, attention: _Attention) -> tuple[int, ...]:
    return timeline.trace.inputs_of(attention.softmax).shape(0)


def _occurrences(timeline: Timeline, attentions: list[_Attention]) -> tuple[Occurrence, ...]:
    if timeline.is_cpu_only:
        return tuple(_on_cpu(timeline, attention) for attention in attentions)
    return tuple(_on_device(timeline, attention) for attention in attentions)


def _on_cpu(timeline: Timeline, attention: _Attention) -> Occurrence:
    tokens = _tokens(timeline, attention)
    kept = min(1.0, _CPU_TILE / tokens[-1]) if tokens else 0.25
    scales = [Scale(np.array([attention.softmax]), kept)]
    if tokens and tokens[-1] < _CPU_SMALL:
        backward = np.concatenate(
            backward_of(timeline, np.array([attention.scores, attention.softmax, attention.values]))
        )
        scales.append(Scale(backward, _CPU_SMALL_BACKWARD))
    pointwise = attention.between[attention.between != attention.softmax]
    return Occurrence(attention.scores, Edit(scales=tuple(scales), removed_ops=pointwise), attention.rows)


def _on_device(timeline: Timeline, attention: _Attention) -> Occurrence:
    trace = timeline.trace
    launched = launched_by(timeline, attention.rows)
    scores, rest = launched[0], np.concatenate(launched[1:])
    backward = np.concatenate(backward_of(timeline, attention.rows))
    backward_device = np.concatenate(launched_by(timeline, backward)) if len(backward) else backward
    products_us = trace.dur_ns[_matrix(timeline, np.concatenate([scores, rest]))].sum() / 1000.0
    fused_us = _fused_us(timeline, attention, products_us)
    scales = [Scale(scores, _ratio(fused_us, trace.dur_ns[scores].sum() / 1000.0))]
    if len(backward_device):
        products_us = trace.dur_ns[_matrix(timeline, backward_device)].sum() / 1000.0
        fused_us = min(fused_us * _FUSED_BACKWARD_PRODUCTS, products_us)
        scales.append(Scale(backward_device, _ratio(fused_us, trace.dur_ns[backward_device].sum() / 1000.0)))
    return Occurrence(
        attention.scores,
        Edit(scales=tuple(scales), removed_ops=attention.rows[1:]),
        np.concatenate([scores, rest, backward_device]),
    )


def _matrix(timeline: Timeline, device: IntArray) -> IntArray:
    return device[np.isin(timeline.kernel_class[device], (KernelClass.GEMM_TENSOR_CORE, KernelClass.GEMM_SIMT))]


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
