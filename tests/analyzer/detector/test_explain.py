"""Reasons, their weights, and how they read."""

import numpy as np
import pytest

from torchtraceap.analyzer.detector.explain import Reason, explain, in_words
from torchtraceap.analyzer.detector.features.schema import FEATURES
from torchtraceap.analyzer.detector.model import Feature

KNOWN = tuple(Feature(f"group.feature_{number}", "1", "") for number in range(4))
NAN = float("nan")


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def test_two_features_that_tell_the_same_both_count():
    """With either of the two the window is bad: taking one away changes nothing."""

    def forest(features):
        return sigmoid(4.0 * np.max(features[:, :2], axis=1) - 2.0)

    (reasons,) = explain(forest, np.array([[1.0, 1.0, 1.0, 1.0]]), KNOWN, np.zeros(4))
    assert {reason.feature.name for reason in reasons} == {"group.feature_0", "group.feature_1"}
    assert [reason.weight for reason in reasons] == pytest.approx([2.0, 2.0])


def test_two_features_that_tell_together_both_count():
    def forest(features):
        return sigmoid(4.0 * features[:, 0] * features[:, 2] - 2.0)

    (reasons,) = explain(forest, np.array([[1.0, 1.0, 1.0, 1.0]]), KNOWN, np.zeros(4))
    assert {reason.feature.name for reason in reasons} == {"group.feature_0", "group.feature_2"}


def test_the_forest_is_asked_once_for_all_windows():
    asked = []

    def forest(features):
        asked.append(len(features))
        return sigmoid(features[:, 0])

    reasons = explain(forest, np.array([[2.0, 0, NAN, 0], [0, 0, 0, 0], [-1.0, 0, 0, 0]]), KNOWN, np.zeros(4))
    assert len(asked) == 1
    assert [len(of_window) for of_window in reasons] == [1, 0, 0]


def test_what_healthy_windows_lack_is_taken_away():
    def forest(features):
        return sigmoid(np.where(np.isnan(features[:, 1]), -3.0, 3.0))

    (reasons,) = explain(forest, np.array([[0.0, 5.0, 0.0, 0.0]]), KNOWN, np.array([0.0, NAN, 0.0, 0.0]))
    assert [reason.weight for reason in reasons] == pytest.approx([6.0])
    assert reasons[0].text == "feature 1 (group): 5, healthy windows have no such figure"


def test_a_reason_reads_plainly():
    feature = Feature("launches.host_per_launch", "log10 us", "Host time spent for each launch.")
    reason = Reason(feature, np.log10(11.2), np.log10(5.0), 1.0)
    assert reason.text == "host per launch (launches): 11.2 us, healthy windows have 5 us"


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (43.2, "% of the step", "43 % of the step"),
        (np.log10(25_300), "log10 us", "25.3 ms"),
        (np.log10(4.2e6), "log10 bytes", "4.2 MB"),
        (np.log10(13), "1 (log10(1 + x))", "12"),
        (0.0, "1 (log10(1 + x))", "0"),
        (np.log10(0.31), "log10 1", "0.31"),
        (np.log10(81_234), "log10 GFLOP/s", "81,234 GFLOP/s"),
        (1.0, "0 or 1", "yes"),
        (2.5, "1", "2.5"),
        (1e-7, "1", "1e-07"),
    ],
)
def test_values_in_words(value, unit, words):
    assert in_words(float(value), unit) == words


def test_every_feature_has_words():
    for feature in FEATURES:
        assert in_words(0.5, feature.unit)
        assert "log10" not in in_words(0.5, feature.unit), feature
