"""The scales that features are told in, and small sums that all groups share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...trace.model import BoolArray, FloatArray, Int32Array, IntArray
from ..model import Feature

NAN = float("nan")
LEAST_US = 0.1
"""Times are told on a log scale; shorter ones count as this."""


def median_by(group: Int32Array | IntArray, took_ns: IntArray, groups: int) -> FloatArray:
    """Shape (groups,): the median (the upper of the middle two) of each group's times; NaN where there is none."""
    if not len(group):
        return np.full(groups, NAN)
    # One sort of one number for both, several times faster than by two keys. Times stay below their bits: 18 minutes.
    keys = np.sort((group.astype(np.int64) << _TIME_BITS) | np.clip(took_ns, 0, (1 << _TIME_BITS) - 1))
    counts = np.bincount(group, minlength=groups)
    middle = np.cumsum(counts) - counts + counts // 2
    found = keys[np.minimum(middle, len(keys) - 1)] & ((1 << _TIME_BITS) - 1)
    return np.where(counts > 0, found, NAN)


_TIME_BITS = 40


def among(numbers: IntArray, wanted: Sequence[int]) -> BoolArray:
    """For each of `numbers`, small ones from 0 up, whether it is one of `wanted`."""
    which = np.zeros(_SMALL, dtype=np.bool_)
    which[list(wanted)] = True
    return which[numbers]


_SMALL = 64


def table(features: tuple[Feature, ...], **columns: FloatArray | float) -> FloatArray:
    """Shape (windows, features): columns in the features' order, each given by the last part of its name.

    Raises ValueError if the two do not name the same.
    """
    names = [feature.name.rpartition(".")[2] for feature in features]
    if sorted(names) != sorted(columns):
        raise ValueError(f"not the same: {sorted(set(names) ^ set(columns))}")
    return np.column_stack(np.broadcast_arrays(*(columns[name] for name in names)))


def known(when: bool, values: FloatArray) -> FloatArray:
    """`values`, or NaN throughout where the trace does not tell."""
    return values if when else np.full(len(values), NAN)


def pct(part: np.ndarray, whole: np.ndarray) -> FloatArray:
    """Share in per cent; 0 of nothing. An event that outlasts its window counts as all of it."""
    return np.where(whole > 0, np.minimum(100.0 * part / np.where(whole > 0, whole, 1), 100.0), 0.0)


def mean(total: np.ndarray, count: np.ndarray) -> FloatArray:
    """Total over count; NaN where there is none."""
    return np.where(count > 0, total / np.where(count > 0, count, 1), NAN)


def log_count(values: np.ndarray) -> FloatArray:
    """log10(1 + x) of counts."""
    return np.log10(1.0 + values)


def log_us(ns: np.ndarray) -> FloatArray:
    """log10 of µs, from ns."""
    return np.log10(np.maximum(ns / 1000.0, LEAST_US))


def log_bytes(values: np.ndarray) -> FloatArray:
    """log10(1 + bytes)."""
    return np.log10(1.0 + values)


def log_ratio(part: np.ndarray, whole: np.ndarray) -> FloatArray:
    """log10 of a ratio, kept within 1e-4 and 1e4; NaN where one of the two is 0 or unknown."""
    usable = (part > 0) & (whole > 0)
    return np.where(usable, np.clip(np.log10(np.where(usable, part, 1) / np.where(usable, whole, 1)), -4, 4), NAN)
