"""The distance of windows to what was learned from, with features missing on either side; and its file."""

import numpy as np
import pytest

from torchtraceap.analyzer.detector.novelty import FARTHEST, Novelty

NAN = float("nan")


def novelty(prototypes=((0.0, 0.0, 0.0), (2.0, 2.0, NAN)), threshold=1.0):
    return Novelty(np.array([10.0, 0.0, 5.0]), np.array([2.0, 1.0, 1.0]), np.array(prototypes), threshold)


def plain_score(known, features):
    """The definition, one window and prototype at a time."""
    scores = []
    for window in known.standardise(features):
        distances = []
        for prototype in known.prototypes:
            shared = np.isfinite(window) & np.isfinite(prototype)
            if shared.any() and shared.sum() >= np.isfinite(window).sum() / 2:
                distances.append(np.sqrt(np.mean((window[shared] - prototype[shared]) ** 2)))
        scores.append(min(distances, default=np.inf))
    return np.array(scores)


def test_the_score_is_the_distance_to_the_nearest_over_shared_features():
    features = np.array([[10.0, 0.0, 5.0], [14.0, 2.0, 900.0], [12.0, NAN, NAN], [NAN, NAN, NAN], [7.0, NAN, 5.0]])
    known = novelty()
    np.testing.assert_allclose(known.score(features), [0.0, 0.0, 1.0, np.inf, 1.5 / np.sqrt(2.0)])


def test_a_prototype_that_lacks_most_features_is_no_measure():
    known = novelty(prototypes=((NAN, NAN, 0.0),))
    assert known.score(np.array([[10.0, 0.0, 5.0], [NAN, 0.0, 5.0]])).tolist() == [np.inf, 0.0]


def test_the_score_follows_the_definition():
    random = np.random.default_rng(3)
    values = random.normal(size=(50, 6))
    values[random.random(values.shape) < 0.3] = NAN
    prototypes = random.normal(size=(9, 6))
    prototypes[random.random(prototypes.shape) < 0.3] = NAN
    known = Novelty(random.normal(size=6), random.uniform(0.5, 2, 6), prototypes, 1.0)
    np.testing.assert_allclose(known.score(values), plain_score(known, values), rtol=1e-5, atol=1e-3)


def test_one_wild_figure_counts_only_so_much():
    known = novelty(prototypes=((0.0, 0.0, 0.0),))
    near, far = known.score(np.array([[10.0, 0.0, 5.0 + 2 * FARTHEST], [10.0, 0.0, 1e9]]))
    assert near == far == pytest.approx(FARTHEST / np.sqrt(3))


def test_windows_beyond_the_threshold_are_unknown():
    assert novelty().are_unknown(np.array([[10.0, 0.0, 5.0], [10.0, 3.0, 5.0]])).tolist() == [False, True]


def test_what_is_saved_is_loaded(tmp_path):
    known = novelty()
    known.save(tmp_path / "novelty.npz")
    loaded = Novelty.load(tmp_path / "novelty.npz")
    features = np.array([[11.0, 0.5, NAN], [14.0, 2.0, 1.0]])
    np.testing.assert_allclose(loaded.score(features), known.score(features))
    assert loaded.threshold == known.threshold


def stored(path, **changed):
    values = {"center": np.zeros(2), "spread": np.ones(2), "prototypes": np.zeros((3, 2)), "threshold": np.float64(1)}
    np.savez(path, **{**values, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"prototypes": np.zeros((3, 5))},
        {"prototypes": np.zeros((0, 2))},
        {"prototypes": np.zeros((5000, 2))},
        {"spread": np.array([1.0, 0.0])},
        {"spread": np.ones(3)},
        {"center": np.array([0.0, NAN])},
        {"center": np.zeros((2, 2))},
        {"threshold": np.zeros(3)},
        {"threshold": np.float64(NAN)},
        {"threshold": np.array("far")},
        {"spread": np.array([1.0, np.inf])},
        {"center": np.zeros(2, dtype="i4,i4")},
        {"center": np.zeros(2, dtype="M8[s]")},
        {"center": np.array([{}, {}], dtype=object)},
        {"prototypes": np.zeros((4096, 4096))},
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path, changed):
    stored(tmp_path / "novelty.npz", **changed)
    with pytest.raises(ValueError):
        Novelty.load(tmp_path / "novelty.npz")


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "novelty.npz"
    path.write_bytes(b"no archive")
    with pytest.raises(ValueError, match="damaged"):
        Novelty.load(path)
    stored(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match="damaged"):
        Novelty.load(path)
    with pytest.raises(OSError):
        Novelty.load(tmp_path / "missing.npz")
