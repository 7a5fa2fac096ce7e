"""Medians over the steps of a region, and windows that are bad alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from torchtraceap.analyzer.detector.smoothing import are_single, median_of_region

WINDOWS = st.lists(st.tuples(st.integers(0, 6), st.floats(0, 1)), max_size=40)


@given(WINDOWS)
def test_the_median_of_each_region(windows):
    region, probability = (np.array(column) for column in zip(*windows, strict=True)) if windows else np.empty((2, 0))
    smoothed = median_of_region(region, probability)
    expected = [np.median(probability[region == own]) for own in region]
    np.testing.assert_allclose(smoothed, expected, atol=1e-12)


def test_kinds_are_smoothed_each_for_itself():
    region = np.array([7, 2, 7, 2, 7])
    kind = np.array([[0.0, 1.0], [0.2, 0.4], [0.5, 0.1], [0.4, 0.2], [1.0, 0.3]])
    expected = np.array([[0.5, 0.3], [0.3, 0.3], [0.5, 0.3], [0.3, 0.3], [0.5, 0.3]])
    np.testing.assert_allclose(median_of_region(region, kind), expected)


def test_one_high_step_is_smoothed_away_and_told():
    region = np.array([0, 1, 0, 1, 0, 1])
    bad = np.array([0.1, 0.9, 0.95, 0.8, 0.2, 0.9])
    assert median_of_region(region, bad)[2] == 0.2
    assert are_single(region, bad, 0.5).tolist() == [False, False, True, False, False, False]


def test_of_two_steps_none_is_single():
    assert not are_single(np.array([0, 0]), np.array([0.9, 0.1]), 0.5).any()


def test_a_region_that_is_bad_twice_has_no_single_window():
    assert not are_single(np.zeros(4, dtype=int), np.array([0.9, 0.1, 0.9, 0.1]), 0.5).any()
