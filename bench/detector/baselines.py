"""What people would use instead: statistics of windows, unsupervised learning, logistic regression; and rules alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.cluster import KMeans
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression

from torchtraceap.analyzer.detector.training.dataset import Dataset
from torchtraceap.analyzer.detector.training.targets import make_targets
from torchtraceap.analyzer.trace.model import BoolArray, FloatArray

from .method import Answer, Calibrated, Method, Standard, drawn, features_of

STATISTICS = ("cost", "launches", "idle", "transfers", "memory")
"""Groups of features that are what profilers and trace analysers print of a stretch of time: kernel time by class,
launch costs, idle time by cause, copies, allocations. What people would learn from who have not built a detector."""
_TOP = 5
"""Figures whose distance from the usual counts, of the z-scores: one alone is noise, all together hide one."""
_CLUSTERS = 32


class RuleStatistics:
    """Robust z-scores of window statistics: how far the furthest few are from what is usual."""

    name = "robust z-score"

    def fit(self, dataset: Dataset, chosen: BoolArray, bad: BoolArray) -> None:
        """What is usual, over all windows: nobody told it which are bad."""
        self._standard = Standard(features_of(dataset, drawn(chosen)))

    def answer(self, dataset: Dataset, chosen: BoolArray) -> Answer:
        """The mean of the largest few."""
        distance = np.abs(self._standard.apply(features_of(dataset, chosen)))
        return Answer(np.sort(distance, axis=1)[:, -_TOP:].mean(axis=1), None)


class Isolation:
    """Isolation forest (Liu, Ting and Zhou 2008) on the window features."""

    name = "isolation forest"

    def fit(self, dataset: Dataset, chosen: BoolArray, bad: BoolArray) -> None:
        """Grow the trees on all windows, healthy and bad."""
        features = features_of(dataset, drawn(chosen))
        self._standard = Standard(features)
        self._forest = IsolationForest(n_estimators=200, random_state=0, n_jobs=2)
        self._forest.fit(self._standard.apply(features))

    def answer(self, dataset: Dataset, chosen: BoolArray) -> Answer:
        """How early a window is alone."""
        return Answer(-self._forest.score_samples(self._standard.apply(features_of(dataset, chosen))), None)


class Clusters:
    """k-means: how far a window is from the nearest of the clusters."""

    name = "k-means"

    def fit(self, dataset: Dataset, chosen: BoolArray, bad: BoolArray) -> None:
        """Find the clusters of all windows, healthy and bad."""
        features = features_of(dataset, drawn(chosen))
        self._standard = Standard(features)
        self._means = KMeans(_CLUSTERS, random_state=0).fit(self._standard.apply(features))

    def answer(self, dataset: Dataset, chosen: BoolArray) -> Answer:
        """The distance to the nearest centre."""
        return Answer(self._means.transform(self._standard.apply(features_of(dataset, chosen))).min(axis=1), None)


class Logistic:
    """Logistic regression, one for P(bad) and one over the kinds."""

    def __init__(self, name: str, features: Callable[[Dataset, BoolArray], FloatArray]) -> None:
        self.name = name
        self._features = features

    def fit(self, dataset: Dataset, chosen: BoolArray, bad: BoolArray) -> None:
        """Learn from labels, like ours."""
        some = drawn(chosen)
        features = self._features(dataset, some)
        self._standard = Standard(features)
        inputs = self._standard.apply(features)
        self._bad = LogisticRegression(C=0.1, max_iter=1000).fit(inputs, bad[some])
        shows = bad[some]
        main = make_targets(dataset).kind[some][shows].argmax(axis=1)
        self._kind = LogisticRegression(C=0.1, max_iter=1000).fit(inputs[shows], main)

    def answer(self, dataset: Dataset, chosen: BoolArray) -> Answer:
        """Probabilities."""
        inputs = self._standard.apply(self._features(dataset, chosen))
        kind = np.zeros((len(inputs), len(dataset.kinds)))
        kind[:, self._kind.classes_] = self._kind.predict_proba(inputs)
        return Answer(self._bad.predict_proba(inputs)[:, 1], kind)


def statistics_of(dataset: Dataset, chosen: BoolArray) -> FloatArray:
    """The plain statistics among the features of some windows."""
    groups = [name.partition(".")[0] for name in dataset.feature_names.tolist()]
    return features_of(dataset, chosen)[:, np.isin(groups, STATISTICS)]


class Rules:
    """The project's own rules, without the detector: what they would save in a window."""

    name = "our rules alone"

    def fit(self, dataset: Dataset, chosen: BoolArray, bad: BoolArray) -> None:
        """Rules learn nothing."""

    def answer(self, dataset: Dataset, chosen: BoolArray) -> Answer:
        """The share of the window's time that the rules would save, all kinds together."""
        worth = dataset.rule_score[chosen].astype(np.float64)
        return Answer(np.minimum(worth.sum(axis=1) / np.maximum(dataset.cost[chosen], 1e-4), 1.0), worth)


def baselines() -> tuple[Method, ...]:
    """All of them, ready to learn; the unsupervised ones' scores become probabilities by the labels, ranks stay."""
    unsupervised = (Isolation(), Clusters(), RuleStatistics())
    return (
        Calibrated(Rules()),
        *(Calibrated(method) for method in unsupervised),
        Logistic("logistic regression", statistics_of),
        Logistic("logistic regression on our features", features_of),
    )
