"""Questions about whole columns that come up everywhere: ids, row numbers, names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from ..trace.model import NONE, BoolArray, FloatArray, Int8Array, Int32Array, IntArray, Trace

Ids = IntArray | Int32Array | Int8Array

T = TypeVar("T", bound=np.generic)


def distinct(values: np.ndarray[tuple[int], np.dtype[T]]) -> np.ndarray[tuple[int], np.dtype[T]]:
    """The values in order, each once.

    `np.unique` hashes, which takes longer, after importing numpy's masked arrays.
    """
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def is_among(values: Ids, wanted: Ids | Sequence[int]) -> BoolArray:
    """For each of `values`, whether it is one of `wanted`: row numbers, or other small numbers from 0 up, or NONE."""
    wanted = np.asarray(wanted, dtype=np.int64)
    table = np.zeros(max(values.max(initial=NONE), wanted.max(initial=NONE)) + 2, dtype=np.bool_)
    table[wanted] = True
    return table[values]


def median(values: IntArray | FloatArray) -> float:
    """The middle value, or the mean of the middle two; there must be a value. See `quartiles`."""
    ordered, middle = np.sort(values), len(values) // 2
    return float(ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2)


def quartiles(values: IntArray | FloatArray) -> tuple[float, float]:
    """The lower and the upper quartile, between values by interpolation; there must be a value.

    `np.percentile` and `np.median` import numpy's masked arrays first, which takes longer than any rule.
    """
    places = np.array((0.25, 0.75)) * (len(values) - 1)
    low, high = np.interp(places, np.arange(len(values)), np.sort(values))
    return float(low), float(high)


def is_named(trace: Trace, rows: Ids, question: Callable[[str], object]) -> BoolArray:
    """For each of `rows`, the answer to a question about its name; every name that occurs is asked once."""
    return _by_name(trace, rows, lambda name: bool(question(name)), np.bool_)


def number_by_name(trace: Trace, rows: Ids, number: Callable[[str], int]) -> IntArray:
    """A number for each of `rows` by its name; every name that occurs is asked once."""
    return _by_name(trace, rows, number, np.int64)


def _by_name(trace: Trace, rows: Ids, fact: Callable[[str], int], kind: type[T]) -> np.ndarray[tuple[int], np.dtype[T]]:
    names = trace.name[rows]
    occurs = np.flatnonzero(np.bincount(names, minlength=len(trace.names)))
    table = np.zeros(len(trace.names), dtype=kind)
    table[occurs] = [fact(trace.names[name]) for name in occurs.tolist()]
    return table[names]
