"""What is compared: something that learns from windows and then says how bad others are, and of which kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from sklearn.linear_model import LogisticRegression

from torchtraceap.analyzer.detector.training.dataset import Dataset
from torchtraceap.analyzer.trace.model import BoolArray, FloatArray

MOST_TO_FIT = 20_000
"""Windows that a baseline learns from, drawn by chance: more change nothing but the time it takes."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a method says of windows."""

    bad: FloatArray
    """Shape (W,): P(bad); of a method without probabilities its score, calibrated by `Calibrated`."""
    kind: FloatArray | None
    """Shape (W, K): how likely each kind is; None of a method that tells no kinds."""


class Method(Protocol):
    """A way to find bad windows."""

    name: str

    def fit(self, dataset: Dataset, chosen: BoolArray, bad: BoolArray) -> None:
        """Learn from the `chosen` windows (mask) of a dataset; `bad`, shape (W,), says which are bad."""
        ...

    def answer(self, dataset: Dataset, chosen: BoolArray) -> Answer:
        """What it says of the `chosen` windows (mask)."""
        ...


class Calibrated:
    """Any method, its scores made probabilities by Platt's scaling on the windows it learned from: ranks stay."""

    def __init__(self, method: Method) -> None:
        self.name = method.name
        self._method = method
        self._scale = LogisticRegression()

    def fit(self, dataset: Dataset, chosen: BoolArray, bad: BoolArray) -> None:
        """As `Method.fit`."""
        self._method.fit(dataset, chosen, bad)
        some = drawn(chosen)
        self._scale.fit(self._method.answer(dataset, some).bad[:, None], bad[some])

    def answer(self, dataset: Dataset, chosen: BoolArray) -> Answer:
        """As `Method.answer`."""
        said = self._method.answer(dataset, chosen)
        return Answer(self._scale.predict_proba(said.bad[:, None])[:, 1], said.kind)


def drawn(chosen: BoolArray, most: int = MOST_TO_FIT) -> BoolArray:
    """A mask of at most `most` of the chosen windows, the same ones each time."""
    places = np.flatnonzero(chosen)
    if len(places) <= most:
        return chosen
    kept = np.zeros_like(chosen)
    kept[np.random.default_rng(0).choice(places, most, replace=False)] = True
    return kept


class Standard:
    """Features as people give them to methods that want numbers: by median and spread, what is missing at 0."""

    def __init__(self, features: FloatArray) -> None:
        with np.errstate(all="ignore"):
            has = ~np.all(np.isnan(features), axis=0)
            low, middle, high = np.zeros((3, features.shape[1]))
            low[has], middle[has], high[has] = np.nanpercentile(features[:, has], (25, 50, 75), axis=0)
            deviation = np.zeros(features.shape[1])
            deviation[has] = np.nanstd(features[:, has], axis=0)
        self._middle = middle
        spread = (high - low) / 1.349
        self._spread = np.where(spread > 0, spread, np.where(deviation > 0, deviation, 1.0))

    def apply(self, features: FloatArray) -> FloatArray:
        """Shape as given: robust z-scores, kept within 10 either way."""
        return np.clip(np.nan_to_num((features - self._middle) / self._spread), -10.0, 10.0)


def features_of(dataset: Dataset, chosen: BoolArray) -> FloatArray:
    """The features of some windows."""
    return dataset.features[chosen].astype(np.float64)
