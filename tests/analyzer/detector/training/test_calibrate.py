"""Votes are weighed so that what is said is seen."""

import numpy as np
import pytest

from torchtraceap.analyzer.detector.combination import combine_bad, combine_kind, logit, sigmoid
from torchtraceap.analyzer.detector.training.calibrate import (
    balanced_threshold,
    calibration_error,
    combine,
    fit_votes,
    reliability,
)

COUNT, KINDS = 20_000, 5


@pytest.fixture(scope="module")
def drawn():
    """Truth, an over-confident forest that is right, and a network that says nothing."""
    random = np.random.default_rng(0)
    chance = random.beta(0.5, 1.5, COUNT)
    bad = random.random(COUNT) < chance
    shares = random.dirichlet(np.ones(KINDS) * 0.5, COUNT)
    kind = np.zeros((COUNT, KINDS))
    kind[np.arange(COUNT), [random.choice(KINDS, p=share) for share in shares]] = 1.0
    kind[~bad] = 0.0
    forest = sigmoid(2.0 * logit(chance)), shares**2 / (shares**2).sum(axis=1, keepdims=True)
    network = random.random(COUNT), random.dirichlet(np.ones(KINDS), COUNT)
    return bad, kind, forest, network


def test_over_confidence_is_undone_and_noise_is_not_listened_to(drawn):
    bad, kind, forest, network = drawn
    votes = fit_votes(bad, kind, np.ones(COUNT), forest, network)
    assert votes.bad_forest == pytest.approx(0.5, abs=0.1)
    assert votes.bad_network == pytest.approx(0.0, abs=0.05)
    assert votes.kind_forest == pytest.approx(0.5, abs=0.1)
    assert votes.kind_network == pytest.approx(0.0, abs=0.05)
    said = combine(votes, forest, network)[0]
    assert calibration_error(bad, said) < 0.02 < calibration_error(bad, forest[0])


def test_windows_without_weight_do_not_count(drawn):
    bad, kind, forest, network = drawn
    counted = np.arange(COUNT) < COUNT // 2
    spoiled = np.where(counted, bad, ~bad)
    votes = fit_votes(spoiled, kind, counted.astype(float), forest, network)
    assert votes.bad_forest == pytest.approx(0.5, abs=0.1)


def test_combined_kinds_are_probabilities(drawn):
    bad, kind, forest, network = drawn
    votes = fit_votes(bad, kind, np.ones(COUNT), forest, network)
    said = combine_kind(votes, forest[1], network[1])
    assert np.allclose(said.sum(axis=1), 1) and (said > 0).all()
    sure = combine_bad(votes, np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    assert 0 < sure[0] < 0.05 and 0.95 < sure[1] < 1


def test_reliability_counts_every_window(drawn):
    bad, _, forest, _ = drawn
    bars = reliability(bad, forest[0])
    assert sum(bar.windows for bar in bars) == COUNT
    assert sum(bar.windows * bar.seen for bar in bars) == pytest.approx(bad.sum())
    assert [bar.said for bar in bars] == sorted(bar.said for bar in bars)


def test_threshold_calls_as_many_bad_as_are(drawn):
    bad, _, forest, _ = drawn
    threshold = balanced_threshold(bad, forest[0])
    called = forest[0] >= threshold
    assert called.sum() == pytest.approx(bad.sum(), rel=0.01)
    precision, recall = bad[called].mean(), called[bad].mean()
    assert precision == pytest.approx(recall, abs=0.01)
