"""How far a window is from all that the detector has learned from.

Features are standardised; the score of a window is the root mean square distance, over the features that it has, to
the nearest of a few hundred prototypes (k-means centres of the windows learned from). Beyond the distance that hardly
any of those had, the models answer outside of what they know. `training/novelty_fit.py` makes the prototypes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from ..trace.model import BoolArray, FloatArray
from .arrays import load_arrays

FARTHEST = 6.0
"""Spreads from the centre at which one feature's deviation is cut off: a single wild figure makes no window unknown."""
_LEAST_SHARED = 0.5
"""Share of a window's features that a prototype must have to be compared with it."""
_MOST_PROTOTYPES = 4096
_MOST_FEATURES = 4096
_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Novelty:
    """What is stored of the windows learned from. F features, P prototypes."""

    center: FloatArray
    """Shape (F,): of each feature the median."""
    spread: FloatArray
    """Shape (F,), above 0: what counts as one unit of distance."""
    prototypes: FloatArray
    """Shape (P, F), standardised; NaN where none of a prototype's windows has the feature."""
    threshold: float
    """The score from which a window is unknown."""

    def standardise(self, features: FloatArray) -> FloatArray:
        """Features in spreads from the centre, cut off at `FARTHEST`; NaN stays."""
        return np.clip((features.astype(np.float64) - self.center) / self.spread, -FARTHEST, FARTHEST)

    def score(self, features: FloatArray) -> FloatArray:
        """Shape (windows,): the distance to the nearest prototype, in spreads; infinite where none compares.

        `features`, shape (windows, F), NaN where not known.
        """
        values, has = _filled(self.standardise(features))
        centers, have = _filled(self.prototypes)
        # sum over shared features of (x - c)^2, as products of matrices
        squares = _products(values**2, have) - 2.0 * _products(values, centers) + _products(has, centers**2)
        shared = _products(has, have)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.maximum(squares, 0.0) / shared
        mean[shared < np.maximum(_LEAST_SHARED * has.sum(axis=1, keepdims=True), 1.0)] = np.inf
        return np.sqrt(mean.min(axis=1, initial=np.inf))

    def are_unknown(self, features: FloatArray) -> BoolArray:
        """Shape (windows,): whether each is too far from all prototypes for the models to know it."""
        return self.score(features) >= self.threshold

    def save(self, path: Path) -> None:
        """Write as a compressed `.npz`, prototypes in half precision."""
        np.savez_compressed(
            path,
            allow_pickle=False,
            center=self.center.astype(np.float32),
            spread=self.spread.astype(np.float32),
            prototypes=self.prototypes.astype(np.float16),
            threshold=np.float64(self.threshold),
        )

    @classmethod
    def load(cls, path: Path) -> Novelty:
        """Read what `save` wrote. Raises OSError, KeyError or ValueError: no such file, damaged, pickled, or shapes
        that do not go together."""
        values = load_arrays(path, (field.name for field in fields(cls)), _MOST_BYTES)
        if not all(value.dtype.kind == "f" for value in values.values()):
            raise ValueError("centre, spread, prototypes or threshold are no numbers")
        center, spread, prototypes = (values[name].astype(np.float64) for name in ("center", "spread", "prototypes"))
        size = center.shape[0] if center.ndim == 1 else 0
        fits = spread.shape == (size,) and prototypes.ndim == 2 and prototypes.shape[1] == size
        if not fits or not 0 < size <= _MOST_FEATURES or not 0 < len(prototypes) <= _MOST_PROTOTYPES:
            raise ValueError(
                f"prototypes {prototypes.shape}, centre {center.shape} and spread {spread.shape} do not fit"
            )
        threshold = values["threshold"]
        if not np.all((spread > 0) & np.isfinite(spread) & np.isfinite(center)):
            raise ValueError("centre or spread are no usable numbers")
        if threshold.shape != () or not threshold > 0:
            raise ValueError("the threshold is no distance")
        return cls(center, spread, prototypes, float(threshold))


def _products(left: FloatArray, right: FloatArray) -> FloatArray:
    """`left @ right.T` on this thread alone: BLAS wakes its others, and on a busy machine waits for them a hundred
    times as long as so small a product takes."""
    return np.einsum("wf,pf->wp", left.astype(np.float32), right.astype(np.float32)).astype(np.float64)


def _filled(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The values with 0 for NaN, and 1 where there is one."""
    has = np.isfinite(values)
    return np.where(has, values, 0.0), has.astype(np.float64)
