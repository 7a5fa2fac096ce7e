"""Datasets put together, cut down and split."""

from dataclasses import replace

import numpy as np
import pytest

from bench.corpus.family import all_families
from bench.corpus.simulator.hardware import DEVICES
from torchtraceap.analyzer.detector.training.dataset import (
    BAD_SHARE,
    LEAST_COST,
    TEST_DEVICES,
    TEST_FAMILIES,
    Dataset,
    is_bad,
    shown_kinds,
)
from torchtraceap.analyzer.detector.training.split import folds, split

from .corpora import made_dataset


@pytest.fixture(scope="module")
def dataset():
    return made_dataset(traces=40)


def test_test_families_and_devices_are_of_the_corpus():
    assert set(all_families()) >= TEST_FAMILIES
    assert set(DEVICES) >= TEST_DEVICES
    assert len({all_families()[name].task for name in TEST_FAMILIES}) >= 5


def test_what_is_saved_is_loaded(dataset, tmp_path):
    dataset.save(tmp_path / "part.npz")
    loaded = Dataset.load(tmp_path / "part.npz")
    assert loaded.schema == dataset.schema
    for name in ("features", "token", "label", "family", "injected"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(dataset, name))


def test_concatenate_numbers_traces_and_runs_on(dataset):
    both = Dataset.concatenate([dataset, dataset])
    assert len(both) == 2 * len(dataset) and both.traces == 2 * dataset.traces
    second = both.take(np.arange(len(dataset), len(both)))
    np.testing.assert_array_equal(second.family[second.trace], dataset.family[dataset.trace])
    assert len(np.unique(both.run)) == 2 * len(np.unique(dataset.run))


def test_parts_that_differ_are_refused(dataset):
    with pytest.raises(ValueError, match="schema"):
        Dataset.concatenate([dataset, replace(dataset, schema="another")])
    with pytest.raises(ValueError, match="kinds differ"):
        Dataset.concatenate([dataset, replace(dataset, kinds=dataset.kinds[::-1])])


def test_a_window_is_bad_if_much_of_it_is_spoiled_and_that_costs(dataset):
    few = dataset.take(np.arange(4))
    label = np.zeros_like(few.label, dtype=np.float64)
    label[:, 1] = [BAD_SHARE * 0.9, BAD_SHARE * 1.1, 1.0, 0.0]
    cost = np.array([1.0, 1.0, LEAST_COST * 0.9, 1.0])
    few = replace(few, label=label, cost=cost)
    assert is_bad(few).tolist() == [False, True, False, False]
    assert shown_kinds(few)[1].tolist() == [False, True, False, False]


def test_split_keeps_test_families_and_devices_apart(dataset):
    parts = split(dataset)
    assert parts.training.any() and parts.test.any() and parts.test_on_cpu.any()
    family, device = dataset.family[dataset.trace], dataset.device[dataset.trace]
    assert not set(family[parts.training]) & TEST_FAMILIES
    assert not set(device[parts.training]) & TEST_DEVICES
    assert set(family[parts.test]) <= TEST_FAMILIES and set(device[parts.test]) <= TEST_DEVICES
    assert not (parts.training & (parts.test | parts.test_on_cpu)).any()


def test_folds_hold_whole_families(dataset):
    fold = folds(dataset, 3, seed=0)
    assert set(fold) == {0, 1, 2}
    family = dataset.family[dataset.trace]
    assert all(len(np.unique(fold[family == one])) == 1 for one in np.unique(family))
