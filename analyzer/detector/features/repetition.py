"""Sameness: stretches of calls that repeat inside a window, and calls that are the same in every step."""

from __future__ import annotations

import numpy as np

from ...timeline.columns import distinct
from ...trace.model import FloatArray, Int32Array, IntArray
from ..model import Feature
from .figures import NAN, known, log_count, log_ratio, pct, table
from .view import View

_LEAST_ROUNDS = 3
_PRIME = np.int64(1_000_003)

FEATURES: tuple[Feature, ...] = (
    Feature(
        "repetition.rounds", "1 (log10(1 + x))", "Most rounds of one group of calls, shapes included: a Python loop."
    ),
    Feature("repetition.round_calls", "1 (log10(1 + x))", "Calls in a round."),
    Feature("repetition.share", "% of calls", "Calls in stretches of 3 rounds and more."),
    Feature(
        "repetition.name_rounds", "1 (log10(1 + x))", "Most rounds by names alone: loops over tensors of many sizes."
    ),
    Feature(
        "repetition.rounds_per_batch", "log10 1", "Rounds over the batch size: 0 where a loop runs over the batch."
    ),
    Feature(
        "repetition.longest_run", "1 (log10(1 + x))", "Longest run of one operator: an optimizer tensor by tensor."
    ),
    Feature(
        "repetition.distinct", "% of calls", "Calls that differ in name or shapes from all before them in the window."
    ),
    Feature(
        "repetition.heavy_twice", "% of heavy calls", "Products and convolutions with the shapes of one before it."
    ),
    Feature("repetition.constant", "% of calls", "Constants, coordinates and resizing the same in every step."),
    Feature("repetition.changing", "% of calls", "Calls whose shapes occur in this region in this step only."),
    Feature(
        "repetition.region_host", "log10 1", "Host time against the region's median over the steps: single anomalies."
    ),
    Feature("repetition.region_work", "log10 1", "Compute time against the region's median over the steps."),
)
_HEAVY = ("linear", "batched matmul", "convolution", "fused attention")
_CONSTANT = ("range", "constant", "interpolation", "sine and cosine", "host tensor")


def compute(view: View) -> FloatArray:
    """Shape (windows, features). In a trace without operators the kernels' names are all that can repeat."""
    rows, window = (view.call_rows, view.call_window) if view.has_ops else _kernels(view)
    if not len(rows):
        return np.full((view.size, len(FEATURES)), NAN)
    names = view.trace.name[rows].astype(np.int64)
    calls = names * (len(view.trace.input_table) + 1) + view.trace.inputs[rows] + 1
    count, shaped = view.count(window), view.has_ops and view.has_shapes
    kinds, call = np.unique(calls, return_inverse=True)
    call = call.ravel()
    rounds, period, covered = _loops(view, call, window)
    name_rounds, _, _ = _loops(view, names, window)
    first = _is_first(window.astype(np.int64) * len(kinds) + call)
    family = view.call_family if view.has_ops else np.zeros(len(rows), dtype=np.int64)
    heavy = view.are_of(family, *_HEAVY)
    steps_with = _steps_with(view, call, len(kinds), window)
    steps = len(np.flatnonzero(np.bincount(view.windows.step)))
    several = steps > 1
    constant = view.are_of(family, *_CONSTANT) & (steps_with == steps)
    return table(
        FEATURES,
        rounds=known(shaped, log_count(rounds)),
        round_calls=known(shaped, log_count(period)),
        share=known(shaped, pct(covered, count)),
        name_rounds=log_count(name_rounds),
        rounds_per_batch=known(shaped, log_ratio(name_rounds * (name_rounds > 1), np.full(view.size, _batch(view)))),
        longest_run=log_count(_longest_run(view, names, window)),
        distinct=known(shaped, pct(view.sum(window, first), count)),
        heavy_twice=known(shaped, pct(view.sum(window, heavy & ~first), view.sum(window, heavy))),
        constant=known(shaped and several, pct(view.sum(window, constant), count)),
        changing=known(shaped and several, pct(view.sum(window, steps_with == 1), count)),
        region_host=known(several, log_ratio(view.host_ns, _usual(view, view.host_ns))),
        region_work=known(several, log_ratio(view.work_ns, _usual(view, view.work_ns))),
    )


def _kernels(view: View) -> tuple[IntArray, Int32Array]:
    """The device events and their windows, in order of window and time."""
    order = np.argsort(view.device_window, kind="stable")
    return view.device[order], view.device_window[order]


def _loops(view: View, ids: IntArray, window: Int32Array) -> tuple[FloatArray, FloatArray, FloatArray]:
    """By window: most rounds of one group of calls (1 of nothing repeated), calls in such a round, calls in loops.

    Three calls in a row make a word. The distance from each word to the same word before it is the same all along a
    loop: stretches of one distance d and length n are n / d + 1 rounds of d calls.
    """
    size = len(ids)
    rounds, period, covered = np.ones(view.size), np.zeros(view.size), np.zeros(view.size)
    if size < 4:
        return rounds, period, covered
    words = (ids[:-2] * _PRIME + ids[1:-1]) * _PRIME + ids[2:]
    whole = window[:-2] == window[2:]
    distance = np.where(whole, _to_previous(window[:-2].astype(np.int64), words), 0)
    starts = np.flatnonzero(np.append(True, (distance[1:] != distance[:-1]) | (window[1:-2] != window[:-3])))
    lengths = np.diff(np.append(starts, len(distance)))
    gaps = distance[starts]
    # The last word of a loop reaches two calls further than it begins.
    found = (gaps > 0) & ((lengths + 2) // np.maximum(gaps, 1) + 1 >= _LEAST_ROUNDS)
    starts, lengths, gaps = starts[found], lengths[found] + 2, gaps[found]
    at, turns = window[starts], lengths // gaps + 1
    np.maximum.at(rounds, at, turns)
    order = np.argsort(turns, kind="stable")
    period[at[order]] = gaps[order]
    np.add.at(covered, at, lengths + gaps)
    return rounds, period, np.minimum(covered, view.count(window))


def _to_previous(window: IntArray, words: IntArray) -> IntArray:
    """How many places before each word the same word stands in the same window; 0 where it is the first."""
    keys = words ^ (window * _PRIME)
    order = np.argsort(keys, kind="stable")
    same = (words[order][1:] == words[order][:-1]) & (window[order][1:] == window[order][:-1])
    distance = np.zeros(len(words), dtype=np.int64)
    distance[order[1:][same]] = (order[1:] - order[:-1])[same]
    return distance


def _is_first(keys: IntArray) -> np.ndarray:
    """For each key, whether none before it is the same."""
    first = np.zeros(len(keys), dtype=np.bool_)
    first[np.unique(keys, return_index=True)[1]] = True
    return first


def _longest_run(view: View, names: IntArray, window: Int32Array) -> FloatArray:
    starts = np.flatnonzero(np.append(True, (names[1:] != names[:-1]) | (window[1:] != window[:-1])))
    return view.largest(window[starts], np.diff(np.append(starts, len(names))))


def _steps_with(view: View, call: IntArray, kinds: int, window: Int32Array) -> IntArray:
    """For each call, in how many steps its region has a call with the same name and inputs."""
    step = view.windows.step[window].astype(np.int64)
    steps = int(step.max(initial=0)) + 1
    part = view.windows.region[window].astype(np.int64) * kinds + call
    in_step = distinct(part * steps + step)
    return np.bincount(in_step // steps, minlength=int(part.max(initial=0)) + 1)[part]


def _usual(view: View, values: FloatArray) -> FloatArray:
    """The median of the values over all windows of each window's region."""
    region = view.windows.region.astype(np.int64)
    order = np.lexsort((values, region))
    counts = np.bincount(region)
    middle = np.cumsum(counts) - counts + counts // 2
    return values[order][np.minimum(middle, max(len(order) - 1, 0))][region] if len(order) else values


def _batch(view: View) -> float:
    """The batch size: the most usual first axis of the inputs of heavy calls with three axes or more; NaN if none."""
    heavy = view.are_of(view.call_family, *_HEAVY)
    rows = view.call_rows[heavy]
    lead = view.input_facts.column("lead", rows)[view.input_facts.column("axes", rows) >= 3].astype(np.int64)
    counts = np.bincount(lead[(lead > 0) & (lead < 1 << 20)]) if len(lead) else np.empty(0, dtype=np.int64)
    return float(counts.argmax()) if len(counts) and counts.max() > 0 else NAN
