"""Which windows the detector learns from and which it is judged by: families and devices that it has never seen."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from ...trace.model import BoolArray, IntArray
from .dataset import TEST_DEVICES, TEST_FAMILIES, Dataset


@dataclass(frozen=True, slots=True)
class Split:
    """Masks over windows, shape (W,). What is in none (a test family on a device of training, a family of training on
    a test device) is neither learned from nor judged by."""

    training: BoolArray
    test: BoolArray
    """Unseen family on an unseen device."""
    test_on_cpu: BoolArray
    """Unseen family on the CPU."""


def split(dataset: Dataset) -> Split:
    """The windows by what they are for."""
    is_new_family = np.isin(dataset.family, sorted(TEST_FAMILIES))
    is_new_device = np.isin(dataset.device, sorted(TEST_DEVICES))
    return Split(
        training=(~is_new_family & ~is_new_device)[dataset.trace],
        test=(is_new_family & is_new_device)[dataset.trace],
        test_on_cpu=(is_new_family & (dataset.source == "cpu"))[dataset.trace],
    )


def folds(dataset: Dataset, count: int, seed: int) -> IntArray:
    """Shape (W,): the fold of each window. Whole families go into one fold, as even in windows as a draw allows."""
    families, of_trace = np.unique(dataset.family, return_inverse=True)
    family = of_trace[dataset.trace]
    size = np.bincount(family, minlength=len(families))
    order = list(range(len(families)))
    random.Random(seed).shuffle(order)
    fold_of, filled = np.zeros(len(families), dtype=np.int64), np.zeros(count, dtype=np.int64)
    for at in sorted(order, key=lambda family: -size[family]):
        fold_of[at] = np.argmin(filled)
        filled[fold_of[at]] += size[at]
    return fold_of[family]
