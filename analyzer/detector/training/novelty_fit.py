"""The prototypes of windows that novelty is measured from; see `novelty.py`."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import MiniBatchKMeans

from ...trace.model import FloatArray, IntArray
from ..novelty import Novelty

PROTOTYPES = 256
_MOST_USED = 30_000
"""Windows that the prototypes are made of."""
_UNKNOWN_SHARE = 0.01
"""Share of the windows of families left out that may count as unknown: they are as new as the next user's."""
_LEAST_SPREAD = 1e-3


def fit_novelty(features: FloatArray, fold: IntArray, seed: int, prototypes: int = PROTOTYPES) -> Novelty:
    """Prototypes of all windows. `features`, shape (W, F), NaN for missing; `fold`, shape (W,): windows of one fold
    measure how far those of families are that prototypes were not made of, which sets the threshold."""
    center, spread = _scale(features)
    scores = [
        _with_prototypes(features[fold != one], center, spread, seed, prototypes).score(features[fold == one])
        for one in np.unique(fold)
    ]
    known = np.concatenate(scores)
    threshold = float(np.quantile(known[np.isfinite(known)], 1 - _UNKNOWN_SHARE))
    novelty = _with_prototypes(features, center, spread, seed, prototypes)
    return Novelty(novelty.center, novelty.spread, novelty.prototypes, threshold)


def _scale(features: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Medians, and half the range between the quartiles or, where that is small, the standard deviation; 1 of none."""
    has = ~np.all(np.isnan(features), axis=0)
    center, spread = np.zeros(features.shape[1]), np.ones(features.shape[1])
    low, middle, high = np.nanpercentile(features[:, has], (25, 50, 75), axis=0)
    half = np.maximum((high - low) / 2, np.nanstd(features[:, has], axis=0) / 2)
    center[has] = middle
    spread[has] = np.where(half > _LEAST_SPREAD, half, 1.0)
    return center, spread


def _with_prototypes(features: FloatArray, center: FloatArray, spread: FloatArray, seed: int, count: int) -> Novelty:
    """K-means centres, each over the values that its windows have."""
    random = np.random.default_rng(seed)
    used = features if len(features) <= _MOST_USED else features[random.permutation(len(features))[:_MOST_USED]]
    values = Novelty(center, spread, np.zeros((0, len(center))), 0.0).standardise(used)
    has = np.isfinite(values)
    filled = np.where(has, values, 0.0)
    # Which features are missing tells windows apart as well: what a trace lacks, a prototype lacks.
    means = MiniBatchKMeans(
        min(count, len(used)),
        init="random",
        n_init=1,  # pyright: ignore[reportArgumentType]  a number, which its stub leaves out
        batch_size=2048,
        random_state=seed,
    )
    group = means.fit_predict(np.hstack([filled, has]).astype(np.float32))
    groups = int(group.max()) + 1
    belongs = np.eye(groups)[group].T
    sums, counts = belongs @ filled, belongs @ has
    with np.errstate(invalid="ignore"):
        prototypes = np.where(counts > 0, sums / counts, np.nan)
    return Novelty(center, spread, prototypes[belongs.sum(axis=1) > 0], 0.0)
