"""Steps of a trace that marks none: its longest repeating sequence of kernels, or of operators."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ..trace.model import NONE, Category, Int32Array, IntArray, Trace
from .columns import distinct, median, quartiles
from .model import CallTree, Launches

_SHARE_OF_NAMES = 0.8
"""This share of all names must come round a whole number of times per repetition."""
_EVENNESS = 0.1
"""Repetitions may differ in length by this much of the median (half the range between the quartiles)."""


def repetitions(trace: Trace, tree: CallTree, launches: Launches) -> tuple[IntArray, IntArray]:
    """Start and end (host time where the launch is known) of each repetition; empty if nothing repeats.

    The number of repetitions is the largest count that divides the counts of nearly all names. A network of twelve
    equal blocks run once does not pass for twelve steps: its first and last layers occur once.
    """
    host_rows, names = _sequence(trace, tree, launches)
    empty = np.empty(0, dtype=np.int64)
    times = _repeat_count(names)
    if times < 2:
        return empty, empty
    kinds, first, count = np.unique(names, return_index=True, return_counts=True)
    once_each = np.flatnonzero(count == times)
    if not len(once_each):
        return empty, empty
    anchor = kinds[once_each[first[once_each].argmin()]]
    places = np.flatnonzero(names == anchor)
    length = np.diff(places)
    low, high = quartiles(length)
    if (high - low) / 2 > _EVENNESS * median(length):
        return empty, empty
    outer = _outermost_of_one(tree, host_rows[places])
    start_ns = trace.ts_ns[outer]
    last_end = max(int(trace.end_ns[outer[-1]]), int(trace.end_ns[host_rows[places[-1] :]].max()))
    return start_ns, np.append(start_ns[1:], last_end)


def _sequence(trace: Trace, tree: CallTree, launches: Launches) -> tuple[IntArray, Int32Array]:
    """(host row, name) of each kernel in order of launch, or of each outermost operator of the busiest thread.

    A kernel whose launch is unknown stands for itself.
    """
    kernels = trace.rows(Category.KERNEL)
    if len(kernels):
        cause = np.where(launches.runtime[kernels] >= 0, launches.runtime[kernels], kernels)
        order = np.argsort(trace.ts_ns[cause], kind="stable")
        return cause[order], trace.name[kernels][order]
    ops = trace.rows(Category.CPU_OP)
    if not len(ops):
        return ops, trace.name[ops]
    ops = ops[trace.thread[ops] == np.bincount(trace.thread[ops]).argmax()]
    above = tree.parent[ops]
    outermost = ops[(above < 0) | (tree.op[above] == NONE)]
    return outermost, trace.name[outermost]


def _repeat_count(names: Int32Array) -> int:
    """How often the sequence runs round; 1 if it does not repeat."""
    count = np.unique(names, return_counts=True)[1]
    for times in distinct(count)[::-1]:
        if times > 1 and np.mean(count % times == 0) >= _SHARE_OF_NAMES:
            return int(times)
    return 1


def _outermost_of_one(tree: CallTree, rows: IntArray) -> IntArray:
    """For each row the outermost host event round it that encloses no other of `rows`."""
    paths = [[int(row), *tree.ancestors(int(row))] for row in rows]
    shared = Counter(row for path in paths for row in path)
    return np.array([[row for row in path if shared[row] == 1 or row == path[0]][-1] for path in paths])
