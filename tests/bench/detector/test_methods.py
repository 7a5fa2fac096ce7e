"""What the detector is compared with really learns, and answers in one shape."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from bench.detector.ablations import ablations
from bench.detector.baselines import Rules, baselines
from bench.detector.evaluate import judge
from bench.detector.method import Answer, Standard, drawn
from tests.analyzer.detector.training.corpora import made_dataset
from torchtraceap.analyzer.detector.training.dataset import is_bad
from torchtraceap.analyzer.detector.training.split import split


@pytest.fixture(scope="module")
def dataset():
    made = made_dataset()
    worth = np.where(made.label > 0, 0.05, 0.0).astype(np.float16)
    return replace(made, rule_score=worth)


@pytest.mark.parametrize("method", baselines(), ids=lambda method: method.name)
def test_baselines_find_what_stands_out(dataset, method):
    parts, bad = split(dataset), is_bad(dataset)
    method.fit(dataset, parts.training, bad)
    said = method.answer(dataset, parts.test)
    assert said.bad.shape == (parts.test.sum(),)
    assert said.bad.min() >= 0 and said.bad.max() <= 1
    assert roc_auc_score(bad[parts.test], said.bad) > 0.7
    if said.kind is not None:
        assert said.kind.shape == (parts.test.sum(), len(dataset.kinds))


@pytest.mark.parametrize("method", ablations(), ids=lambda method: method.name)
def test_a_forest_without_a_source_learns_nothing_from_it(dataset, method):
    parts, bad = split(dataset), is_bad(dataset)
    left_out = "cpu" if "CPU" in method.name else "simulated"
    is_left_out = (dataset.source == left_out)[dataset.trace]
    method.fit(dataset, parts.training, bad)
    said = method.answer(dataset, parts.test)
    spoiled = replace(dataset, features=np.where(is_left_out[:, None] & parts.training[:, None], 9, dataset.features))
    method.fit(spoiled, parts.training, bad)
    np.testing.assert_allclose(method.answer(dataset, parts.test).bad, said.bad, atol=1e-9)
    assert roc_auc_score(bad[parts.test], said.bad) > 0.7


def test_rules_are_judged_by_what_they_would_save(dataset):
    rules = Rules()
    everything = np.ones(len(dataset), dtype=np.bool_)
    judged = judge(rules, dataset, everything)
    assert judged.values()["auc_bad"] == pytest.approx(1.0)
    assert judged.values()["kind_top1"] == pytest.approx(1.0)
    silent = judge(rules, replace(dataset, rule_score=np.zeros_like(dataset.rule_score)), everything)
    assert silent.values()["auc_bad"] == pytest.approx(0.5)
    assert silent.values()["kind_top3"] == 0.0


def test_a_method_without_kinds_has_no_figures_of_them(dataset):
    class Blind:
        name = "blind"

        def fit(self, dataset, chosen, bad):
            """Nothing."""

        def answer(self, dataset, chosen):
            return Answer(np.zeros(int(chosen.sum())), None)

    assert set(judge(Blind(), dataset, np.ones(len(dataset), dtype=np.bool_)).values()) == {"auc_bad", "ap_bad", "ece"}


def test_standard_features_are_spreads_from_the_middle():
    features = np.array([[value, np.nan, 5.0] for value in (0.0, 1.0, 2.0, 3.0, 4.0, 1000.0)])
    standard = Standard(features)
    values = standard.apply(np.array([[2.5, 3.0, np.nan]]))
    assert values[0, 0] == pytest.approx(0.0)
    assert values[0, 2] == 0.0
    assert standard.apply(features).max() == 10.0


def test_the_same_windows_are_drawn_each_time():
    chosen = np.arange(1000) % 2 == 0
    first = drawn(chosen, 100)
    assert first.sum() == 100
    assert np.all(chosen[first])
    assert np.array_equal(first, drawn(chosen, 100))
