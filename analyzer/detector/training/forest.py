"""The forests: which windows are bad, and of those that are, which kind each is. Random forests with random thresholds
(Geurts, Ernst and Wehenkel, "Extremely randomized trees", 2006) of scikit-learn, whose trees send missing values where
they part the classes best. On families left out they rank better than forests with best thresholds, which keep to the
families that they know, and grow in less than half the time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from ...trace.model import FloatArray
from .targets import Targets, kind_weights

TREES = 40
BAD_LEAVES = 1200
"""Most leaves of a tree; with `TREES` it bounds the size of the exported forests. Deep trees tell kinds apart that need
several figures at once."""
KIND_LEAVES = 1500
_FEWEST_IN_LEAF = 2
_FEATURES_TRIED = 0.5
"""Share of the features that each split may choose from."""


@dataclass(frozen=True, slots=True)
class Forest:
    """Two trained forests."""

    bad: ExtraTreesClassifier
    kind: ExtraTreesClassifier
    kinds: int
    """Number of kinds; those that the forest never saw have probability 0."""

    def predict(self, features: np.ndarray) -> tuple[FloatArray, FloatArray]:
        """P(bad), shape (W,), and P(kind | bad), shape (W, kinds), from float32 features with NaN for missing."""
        kind = np.zeros((len(features), self.kinds))
        kind[:, self.kind.classes_] = self.kind.predict_proba(features)
        return np.asarray(self.bad.predict_proba(features))[:, 1], kind


def fit_forest(features: np.ndarray, targets: Targets, seed: int, jobs: int = 2, trees: int = TREES) -> Forest:
    """Learn from float32 features, shape (W, F). Raises ValueError if all windows are bad, or none is."""
    labelled = targets.is_labelled
    if len(np.unique(targets.bad[labelled])) < 2:
        raise ValueError("the forest needs windows that are bad and windows that are not")
    bad = _forest(BAD_LEAVES, trees, seed, jobs)
    bad.fit(features[labelled], targets.bad[labelled], targets.weight[labelled])
    # A window of several kinds stands there once for each, with the kind's share as its weight.
    window, of_kind = np.nonzero(targets.kind)
    weight = targets.kind[window, of_kind] * targets.weight[window] * kind_weights(targets)[of_kind]
    kind = _forest(KIND_LEAVES, trees, seed + 1, jobs)
    kind.fit(features[window], of_kind, weight)
    return Forest(bad, kind, targets.kind.shape[1])


def _forest(leaves: int, trees: int, seed: int, jobs: int) -> ExtraTreesClassifier:
    return ExtraTreesClassifier(
        trees,
        max_leaf_nodes=leaves,
        min_samples_leaf=_FEWEST_IN_LEAF,
        max_features=_FEATURES_TRIED,  # pyright: ignore[reportArgumentType]  a share, which its stub leaves out
        n_jobs=jobs,
        random_state=seed,
    )
