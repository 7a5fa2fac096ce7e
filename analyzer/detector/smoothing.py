"""Probabilities of a region over its steps: what every step shows counts, what one alone shows does not."""

from __future__ import annotations

import numpy as np

from ..trace.model import BoolArray, FloatArray, Int32Array, IntArray

_LEAST_FOR_SINGLE = 3
"""Windows of a region, below which none can be told from the rest."""


def median_of_region(region: IntArray | Int32Array, probability: FloatArray) -> FloatArray:
    """For each window the median over all windows of its region: of the middle two, where there are two, their mean.

    `probability`, shape (windows,) or (windows, kinds), 0 to 1.
    """
    if not len(region):
        return probability
    of_region, count = _numbered(region)
    # Regions laid end to end on one axis: sorting sorts within each.
    offset = (2.0 * of_region).reshape(-1, *([1] * (probability.ndim - 1)))
    ordered = np.sort(probability + offset, axis=0)
    first = np.cumsum(count) - count
    middle = (ordered[first + (count - 1) // 2] + ordered[first + count // 2]) / 2
    return np.clip(middle[of_region] - offset, 0.0, 1.0)


def are_single(region: IntArray | Int32Array, probability: FloatArray, threshold: float) -> BoolArray:
    """For each window whether it alone of its region's windows, three or more, is bad (`threshold` and above)."""
    if not len(region):
        return np.zeros(0, dtype=np.bool_)
    of_region, count = _numbered(region)
    is_bad = probability >= threshold
    bad = np.bincount(of_region, weights=is_bad)
    return is_bad & (bad[of_region] == 1) & (count[of_region] >= _LEAST_FOR_SINGLE)


def _numbered(region: IntArray | Int32Array) -> tuple[IntArray, IntArray]:
    """The regions numbered without holes, and how many windows each has."""
    _, of_region, count = np.unique(region, return_inverse=True, return_counts=True)
    return of_region, count
