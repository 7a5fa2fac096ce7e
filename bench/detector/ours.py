"""The shipped models, as the product runs them: together, and each alone."""

from __future__ import annotations

import numpy as np

from torchtraceap.analyzer.detector.card import Votes
from torchtraceap.analyzer.detector.combination import combine_bad, combine_kind
from torchtraceap.analyzer.detector.scorer import Detector
from torchtraceap.analyzer.detector.training.dataset import Dataset
from torchtraceap.analyzer.trace.model import BoolArray

from .method import Answer

_BATCH = 4096


class Shipped:
    """A detector, its models weighed by its card or by other votes."""

    def __init__(self, name: str, detector: Detector, votes: Votes | None = None) -> None:
        self.name = name
        self._detector = detector
        self._votes = votes or detector.card.votes

    def fit(self, dataset: Dataset, chosen: BoolArray, bad: BoolArray) -> None:
        """They have learned already. Raises ValueError if the dataset is of other features or kinds."""
        card = self._detector.card
        if dataset.schema != card.schema or tuple(dataset.kinds.tolist()) != card.kinds:
            raise ValueError("the models were trained on other features or kinds than the corpus has: train them again")

    def answer(self, dataset: Dataset, chosen: BoolArray) -> Answer:
        """P(bad), and P(kind) of what is bad."""
        parts = [self._batch(dataset, rows) for rows in _batches(np.flatnonzero(chosen))]
        kinds = [part.kind for part in parts if part.kind is not None]
        return Answer(np.concatenate([part.bad for part in parts]), np.concatenate(kinds))

    def _batch(self, dataset: Dataset, rows: np.ndarray) -> Answer:
        features = dataset.features[rows].astype(np.float32)
        forest = self._detector.forest.run(features=features)
        network = self._detector.network.run(
            token=dataset.token[rows].astype(np.int64),
            figures=dataset.figures[rows].astype(np.float32),
            features=features,
        )
        bad = combine_bad(self._votes, forest.bad, network.bad)
        return Answer(bad, combine_kind(self._votes, forest.kind, network.kind))


FOREST_ALONE = Votes(bad_forest=1.0, bad_network=0.0, bad_bias=0.0, kind_forest=1.0, kind_network=0.0)
NETWORK_ALONE = Votes(bad_forest=0.0, bad_network=1.0, bad_bias=0.0, kind_forest=0.0, kind_network=1.0)


def ours(detector: Detector) -> tuple[Shipped, ...]:
    """Both together, the forest alone, the network alone."""
    return (
        Shipped("ours", detector),
        Shipped("forest alone", detector, FOREST_ALONE),
        Shipped("network alone", detector, NETWORK_ALONE),
    )


def _batches(rows: np.ndarray) -> list[np.ndarray]:
    return np.split(rows, range(_BATCH, len(rows), _BATCH)) if len(rows) else []
