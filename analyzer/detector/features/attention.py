"""Attention, fused or in passes, and what stands round it."""

from __future__ import annotations

import re

import numpy as np

from ...trace.model import FloatArray, OpInputs
from ..model import Feature
from .families import number
from .inputs import Kind, kind_of
from .view import View, known, log_count, log_ratio, mean, pct, table

_REACH = 8
"""A product belongs to a softmax from this many calls away: scale, mask, dropout and casts stand between."""
_FLASH = re.compile(r"flash|fmha|cudnn.*(attention|sdpa)|sdpa", re.IGNORECASE)
_EFFICIENT = re.compile(r"efficient|cutlassF|fmha_cutlass", re.IGNORECASE)
_ANY = re.compile(r"scaled_dot_product_attention$")

FEATURES: tuple[Feature, ...] = (
    Feature("attention.fused", "1 (log10(1 + x))", "Calls of the fused attention."),
    Feature("attention.flash", "1 (log10(1 + x))", "Of these, by a flash or cuDNN kernel."),
    Feature("attention.efficient", "1 (log10(1 + x))", "By the memory-efficient kernel."),
    Feature("attention.math", "1 (log10(1 + x))", "In passes after all: mask, type or sizes ruled the kernels out."),
    Feature("attention.passes", "1 (log10(1 + x))", "Product, softmax, product in a row: attention by hand."),
    Feature("attention.between", "1", "Calls between the two products, softmax included: scale, mask, bias, dropout."),
    Feature("attention.masked", "% of passes and fused calls", "With a mask or bias on the scores."),
    Feature("attention.float_mask", "% of fused calls", "With a mask that is not boolean."),
    Feature(
        "attention.mask_share", "log10 1", "Elements of the mask over tokens squared: shared, or dense for each head."
    ),
    Feature("attention.tokens", "log10 1", "Keys of the longest attention."),
    Feature("attention.scores_per_query", "log10 1", "Scores for each element of the queries: what fusing saves."),
    Feature("attention.odd_heads", "% of fused calls", "Head width that is no multiple of 8."),
    Feature("attention.query_axes", "1", "Axes of the queries: five or more rule fast kernels out."),
    Feature("attention.fp32", "% of fused calls", "On fp32 tensors."),
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
    fused_rows = view.call_rows[view.named(view.call_rows, _ANY)]
    fused = view.count(view.windows.of[fused_rows])
    passes, between, masked, softmax_rows = _passes(view)
    attentions = passes + fused
    window, took_ns, family, _ = view.work
    own = np.isin(family, [number(n) for n in ("fused attention", "math attention", "softmax", "batched matmul")])
    math = view.count(view.op_window[view.family == number("math attention")])
    told = view.has_ops

    def each(*names: str) -> FloatArray:
        """Operators of these families for each attention; NaN where there is none."""
        count = view.count(view.op_window[np.isin(view.family, [number(name) for name in names])])
        return known(told, np.minimum(mean(count, attentions), 1e3))

    return table(
        FEATURES,
        fused=known(told, log_count(fused)),
        flash=known(told, log_count(_backends(view, _FLASH))),
        efficient=known(told, log_count(_backends(view, _EFFICIENT))),
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


def _backends(view: View, pattern: re.Pattern[str]) -> FloatArray:
    """Forward operators of one backend that the fused call went to."""
    inner = np.isin(view.family, [number("fused attention")]) & ~view.named(view.ops, _ANY)
    inner &= view.named(view.ops, pattern) & ~view.named(view.ops, _BACKWARD)
    nested = view.outer_family(view.ops[inner]) == number("fused attention")
    outer = view.windows.of[view.ops[inner][nested & view.named(view.ops[inner], _SCALED)]]
    return view.count(outer)


_BACKWARD = re.compile(r"[bB]ackward")
_SCALED = re.compile(r"scaled_dot_product")


def _passes(view: View) -> tuple[FloatArray, FloatArray, FloatArray, np.ndarray]:
    """Attentions by hand: how many by window, calls between their products, how many are masked, rows of softmax."""
    family, window = view.call_family, view.call_window
    size = len(family)
    product = np.isin(family, [number("batched matmul"), number("einsum")])
    place = np.arange(size)
    before = np.maximum.accumulate(np.where(product, place, -_REACH * 2)) if size else place
    after = np.minimum.accumulate(np.where(product, place, size + _REACH * 2)[::-1])[::-1] if size else place
    softmax = np.flatnonzero(family == number("softmax"))
    first, last = before[softmax], after[softmax]
    near = (softmax - first <= _REACH) & (last - softmax <= _REACH)
    softmax, first, last = softmax[near], first[near], last[near]
    same = (window[first] == window[softmax]) & (window[last] == window[softmax])
    softmax, first, last = softmax[same], first[same], last[same]
    on_scores = np.append(0, np.cumsum(np.isin(family, [number("where and mask")]) | view.named(view.call_rows, _ADD)))
    masked = on_scores[softmax] > on_scores[first]
    at = window[softmax]
    return (
        view.count(at),
        view.sum(at, last - first - 1),
        view.sum(at, masked),
        view.call_rows[softmax],
    )


_ADD = re.compile(r"^aten::(add_?|baddbmm)$")


def _linears(view: View) -> dict[str, FloatArray]:
    """Columns about linear layers in a row on one size, by name; views between them do not break a row."""
    light = [number(name) for name in ("view", "permute", "slice and split", "allocation")]
    kept = ~np.isin(view.call_family, light)
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
    facts = view.facts(fused, _fused_facts, 8)
    tokens, scores, queries, odd, axes, mask, float_mask, fp32 = facts.T
    score_facts = view.facts(softmax, _score_facts, 2)
    fused_window, softmax_window = of[fused], of[softmax]
    fused_count = view.count(fused_window)
    attentions = fused_count + view.count(softmax_window)
    all_scores = view.sum(fused_window, scores) + view.sum(softmax_window, score_facts[:, 1])
    longest = np.maximum(view.largest(fused_window, tokens), view.largest(softmax_window, score_facts[:, 0]))
    # The first product of an attention by hand reads the queries: scores over their elements is keys over head width.
    by_hand = view.input_facts.column("first_elements", _products_before(view, softmax))
    all_queries = view.sum(fused_window, queries) + view.sum(softmax_window, by_hand)
    shaped = view.has_shapes
    none = np.where(longest > 0, longest, np.nan)
    return {
        "masked": known(shaped, pct(masked + view.sum(fused_window, mask > 0), attentions)),
        "float_mask": known(shaped, pct(view.sum(fused_window, float_mask), fused_count)),
        "mask_share": known(shaped, log_ratio(view.largest(fused_window, mask), longest**2)),
        "tokens": known(shaped, np.log10(none)),
        "scores_per_query": known(shaped, log_ratio(all_scores, all_queries)),
        "odd_heads": known(shaped, pct(view.sum(fused_window, odd), fused_count)),
        "query_axes": known(shaped, view.largest(fused_window, axes)),
        "fp32": known(shaped, pct(view.sum(fused_window, fp32), fused_count)),
    }


def _products_before(view: View, softmax: np.ndarray) -> np.ndarray:
    """For each softmax the row of the last batched product before it."""
    product = np.isin(view.call_family, [number("batched matmul"), number("einsum")])
    rows = view.call_rows
    if not len(softmax):
        return softmax
    last = np.maximum.accumulate(np.where(product, np.arange(len(rows)), 0))
    place = np.zeros(len(view.trace), dtype=np.int64)
    place[rows] = np.arange(len(rows))
    return rows[last[place[softmax]]]


def _fused_facts(_name: str, inputs: OpInputs) -> tuple[float, ...]:
    query, key, mask = inputs.shape(0), inputs.shape(1), inputs.shape(3)
    if len(query) < 2 or len(key) < 2:
        return (0.0,) * 8
    elements = float(np.prod(query, dtype=np.float64))
    return (
        key[-2],
        elements / max(query[-1], 1) * key[-2],
        elements,
        query[-1] % 8 != 0,
        len(query),
        float(np.prod(mask, dtype=np.float64)) if mask else 0.0,
        bool(mask) and kind_of(inputs.dtype(3)) != Kind.BOOL,
        kind_of(inputs.dtype(0)) == Kind.FP32,
    )


def _score_facts(_name: str, inputs: OpInputs) -> tuple[float, float]:
    scores = inputs.shape(0)
    return (float(scores[-1]), float(np.prod(scores, dtype=np.float64))) if scores else (0.0, 0.0)
