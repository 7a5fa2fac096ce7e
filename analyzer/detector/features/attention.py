"""Attention, fused or in passes, and what stands round it."""

from __future__ import annotations

from math import prod

import numpy as np

from ...trace.model import FloatArray, OpInputs
from ..model import Feature
from .families import number
from .figures import known, log_count, log_ratio, mean, pct, table
from .inputs import Kind, kind_of
from .marks import Mark
from .view import View

_REACH = 8
"""A product belongs to a softmax from this many calls away: scale, mask, dropout and casts stand between."""

FEATURES: tuple[Feature, ...] = (
    Feature("attention.fused", "1 (log10(1 + x))", "Calls of the fused attention."),
    Feature("attention.flash", "1 (log10(1 + x))", "Of these, by a flash or cuDNN kernel."),
    Feature("attention.math", "1 (log10(1 + x))", "In passes after all: mask, type or sizes ruled the kernels out."),
    Feature("attention.passes", "1 (log10(1 + x))", "Product, softmax, product in a row: attention by hand."),
    Feature("attention.between", "1", "Calls between the two products, softmax included: scale, mask, bias, dropout."),
    Feature("attention.masked", "% of passes and fused calls", "With a mask or bias on the scores."),
    Feature("attention.float_mask", "% of fused calls", "With a mask that is not boolean."),
    Feature(
        "attention.mask_share", "log10 1", "Elements of the mask over tokens squared: shared, or dense for each head."
    ),
    Feature("attention.tokens", "log10 1", "Keys of the longest attention."),
    Feature("attention.odd_heads", "% of fused calls", "Head width that is no multiple of 8."),
    Feature("attention.query_axes", "1", "Axes of the queries: five or more rule fast kernels out."),
    Feature("attention.copies", "1", "Copies for each attention in the window: contiguous before, transposed after."),
    Feature("attention.indexing", "1", "Indexing and gathering for each attention: biases made anew."),
    Feature("attention.linears", "1", "Linear layers for each attention: 4 with split projections, 2 with joint ones."),
    Feature(
        "attention.alike_linears", "1 (log10(1 + x))", "Most linear layers in a row on inputs and weights of one size."
    ),
    Feature("attention.same_input_linears", "1 (log10(1 + x))", "Most linear layers in a row on inputs of one size."),
    Feature("attention.averaged", "1", "Means for each attention: weights handed out, averaged over heads."),
    Feature("attention.module_calls", "1 (log10(1 + x))", "Calls of the joint multi-head operator."),
    Feature("attention.share", "% of the compute time", "Time in fused kernels, softmax and batched products."),
)


def compute(view: View) -> FloatArray:
    """Shape (windows, features)."""
    fused_rows = view.call_rows[view.marked(view.call_rows, Mark.FUSED_ATTENTION)]
    fused = view.count(view.windows.of[fused_rows])
    passes, between, masked, softmax_rows = _passes(view)
    attentions = passes + fused
    window, took_ns, family, _ = view.work
    own = view.are_of(family, "fused attention", "math attention", "softmax", "batched matmul")
    math = view.count(view.op_window[view.family == number("math attention")])
    told = view.has_ops

    def each(*names: str) -> FloatArray:
        """Operators of these families for each attention; NaN where there is none."""
        count = view.count(view.op_window[view.are_of(view.family, *names)])
        return known(told, np.minimum(mean(count, attentions), 1e3))

    return table(
        FEATURES,
        fused=known(told, log_count(fused)),
        flash=known(told, log_count(_backends(view, Mark.FLASH))),
        math=known(told, log_count(math)),
        passes=known(told, log_count(passes)),
        between=known(told, mean(between, passes)),
        copies=each("copy"),
        indexing=each("index", "gather and scatter", "embedding"),
        linears=known(
            told, np.minimum(mean(view.count(view.call_window[view.call_family == number("linear")]), attentions), 1e3)
        ),
        averaged=each("reduction"),
        module_calls=known(told, log_count(view.count(view.op_window[view.family == number("multi-head module")]))),
        share=known(told, pct(view.sum(window, took_ns * own), view.work_ns)),
        **_linears(view),
        **_sizes(view, fused_rows, softmax_rows, masked),
    )


def _backends(view: View, mark: Mark) -> FloatArray:
    """Forward operators of one backend that the fused call went to."""
    return view.count(view.windows.of[view.with_mark(mark)])


def _passes(view: View) -> tuple[FloatArray, FloatArray, FloatArray, np.ndarray]:
    """Attentions by hand: how many by window, calls between their products, how many are masked, rows of softmax."""
    family, window = view.call_family, view.call_window
    size = len(family)
    product = view.are_of(family, "batched matmul", "einsum")
    place = np.arange(size)
    before = np.maximum.accumulate(np.where(product, place, -_REACH * 2)) if size else place
    after = np.minimum.accumulate(np.where(product, place, size + _REACH * 2)[::-1])[::-1] if size else place
    softmax = np.flatnonzero(family == number("softmax"))
    first, last = before[softmax], after[softmax]
    near = (softmax - first <= _REACH) & (last - softmax <= _REACH)
    softmax, first, last = softmax[near], first[near], last[near]
    same = (window[first] == window[softmax]) & (window[last] == window[softmax])
    softmax, first, last = softmax[same], first[same], last[same]
    on_scores = np.append(
        0, np.cumsum((family == number("where and mask")) | view.marked(view.call_rows, Mark.ADDITION))
    )
    masked = on_scores[softmax] > on_scores[first]
    at = window[softmax]
    return (
        view.count(at),
        view.sum(at, last - first - 1),
        view.sum(at, masked),
        view.call_rows[softmax],
    )


def _linears(view: View) -> dict[str, FloatArray]:
    """Columns about linear layers in a row on one size, by name; views between them do not break a row."""
    kept = ~view.are_of(view.call_family, "view", "permute", "slice and split", "allocation")
    rows, window = view.call_rows[kept], view.call_window[kept]
    linear = view.call_family[kept] == number("linear")
    facts = view.facts(rows[linear], _linear_sizes, 2)
    found: dict[str, FloatArray] = {}
    for name, column in (("same_input_linears", 0), ("alike_linears", 1)):
        values = np.zeros(len(rows))
        values[linear] = facts[:, column]
        starts = np.flatnonzero(np.append(True, (values[1:] != values[:-1]) | (window[1:] != window[:-1])))
        lengths = np.diff(np.append(starts, len(values)))
        told = values[starts] > 0 if len(rows) else np.zeros(1, dtype=np.bool_)
        longest = view.largest(window[starts[told]], lengths[told]) if len(rows) else np.zeros(view.size)
        found[name] = known(view.has_shapes, log_count(longest))
    return found


def _linear_sizes(name: str, inputs: OpInputs) -> tuple[float, float]:
    """Numbers that stand for the sizes of a linear layer's input, and for those of its input and weight; 0: unknown."""
    first = 1 if "add" in name else 0
    data, weight = inputs.shape(first), inputs.shape(first + 1)
    if not data:
        return 0.0, 0.0
    return float(hash(data) % (1 << 52) + 1), float(hash((data, weight)) % (1 << 52) + 1)


def _sizes(view: View, fused: np.ndarray, softmax: np.ndarray, masked: FloatArray) -> dict[str, FloatArray]:
    """Columns from the sizes of queries, keys, masks and scores, by name."""
    of = view.windows.of
    facts = view.facts(fused, _fused_facts, 5)
    tokens, odd, axes, mask, float_mask = facts.T
    score_tokens = view.facts(softmax, _score_facts, 1)[:, 0]
    fused_window, softmax_window = of[fused], of[softmax]
    fused_count = view.count(fused_window)
    attentions = fused_count + view.count(softmax_window)
    longest = np.maximum(view.largest(fused_window, tokens), view.largest(softmax_window, score_tokens))
    shaped = view.has_shapes
    none = np.where(longest > 0, longest, np.nan)
    return {
        "masked": known(shaped, pct(masked + view.sum(fused_window, mask > 0), attentions)),
        "float_mask": known(shaped, pct(view.sum(fused_window, float_mask), fused_count)),
        "mask_share": known(shaped, log_ratio(view.largest(fused_window, mask), longest**2)),
        "tokens": known(shaped, np.log10(none)),
        "odd_heads": known(shaped, pct(view.sum(fused_window, odd), fused_count)),
        "query_axes": known(shaped, view.largest(fused_window, axes)),
    }


def _fused_facts(_name: str, inputs: OpInputs) -> tuple[float, ...]:
    """Keys, whether the heads' width is odd, axes of the queries, elements of the mask, whether that is not boolean."""
    query, key, mask = inputs.shape(0), inputs.shape(1), inputs.shape(3)
    if len(query) < 2 or len(key) < 2:
        return (0.0,) * 5
    return (
        key[-2],
        query[-1] % 8 != 0,
        len(query),
        float(prod(mask)) if mask else 0.0,
        bool(mask) and kind_of(inputs.dtype(3)) != Kind.BOOL,
    )


def _score_facts(_name: str, inputs: OpInputs) -> tuple[float]:
    scores = inputs.shape(0)
    return (float(scores[-1]) if scores else 0.0,)
