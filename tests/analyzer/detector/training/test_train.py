"""Training from a corpus to files that onnxruntime runs."""

import numpy as np
import onnxruntime
import pytest

from torchtraceap.analyzer.detector.card import FOREST, NETWORK, NOVELTY, read_card
from torchtraceap.analyzer.detector.card_text import as_page
from torchtraceap.analyzer.detector.combination import combine_bad, combine_kind
from torchtraceap.analyzer.detector.novelty import Novelty
from torchtraceap.analyzer.detector.training.dataset import is_bad
from torchtraceap.analyzer.detector.training.split import split
from torchtraceap.analyzer.detector.training.train import Settings, train

from .corpora import KINDS, made_dataset

QUICK = Settings(folds=2, epochs=25, trees=20, threads=1)


@pytest.fixture(scope="module")
def dataset():
    return made_dataset(traces=150)


@pytest.fixture(scope="module")
def trained(dataset, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    told = []
    train(dataset, folder, QUICK, told.append)
    assert any("epoch 25 of 25" in sentence for sentence in told)
    return folder


def answers(path, **inputs):
    bad, kind = onnxruntime.InferenceSession(str(path)).run(["bad", "kind"], inputs)
    return bad[:, 0].astype(np.float64), kind.astype(np.float64)


def test_files_find_bad_windows_and_their_kinds_in_unseen_families_and_devices(dataset, trained):
    card = read_card(trained)
    unseen = dataset.take(split(dataset).test)
    forest = answers(trained / FOREST, features=unseen.features.astype(np.float32))
    network = answers(
        trained / NETWORK,
        token=unseen.token.astype(np.int64),
        figures=unseen.figures.astype(np.float32),
        features=unseen.features.astype(np.float32),
    )
    bad = is_bad(unseen)
    said = combine_bad(card.votes, forest[0], network[0])
    kind = combine_kind(card.votes, forest[1], network[1])
    assert 0.1 < bad.mean() < 0.9
    assert said[bad].mean() > 0.7 and said[~bad].mean() < 0.25
    assert (kind[bad].argmax(axis=1) == unseen.label[bad].argmax(axis=1)).mean() > 0.85
    assert np.allclose(kind.sum(axis=1), 1)
    assert (said >= card.threshold).mean() == pytest.approx(bad.mean(), abs=0.1)


def test_card_tells_data_and_figures(dataset, trained):
    card = read_card(trained)
    parts = split(dataset)
    assert card.kinds == KINDS
    assert card.data.windows == parts.training.sum()
    assert not set(card.data.families) & set(card.data.test_families)
    assert not set(card.data.devices) & set(card.data.test_devices)
    assert sum(card.data.windows_by_kind.values()) == card.data.bad_windows
    by_set = {figures.what: figures for figures in card.figures}
    unseen = by_set["unseen families on unseen devices"]
    assert unseen.windows == parts.test.sum()
    assert unseen.auc_bad.low <= unseen.auc_bad.value <= unseen.auc_bad.high
    assert unseen.auc_bad.value > 0.93 and unseen.kind_top1.value > 0.85 and unseen.ece.value < 0.1
    assert all(median is not None for median in card.healthy_median)


def test_page_tells_what_the_card_does(trained):
    page = as_page(read_card(trained))
    assert "| host-scalar-read |" in page
    assert "AUC-ROC" in page and "H100 SXM" in page


def test_few_windows_of_unseen_families_are_unknown_and_strange_ones_are(dataset, trained):
    novelty = Novelty.load(trained / NOVELTY)
    unseen = dataset.features[split(dataset).test].astype(np.float64)
    assert novelty.are_unknown(unseen).mean() < 0.05
    assert novelty.are_unknown(unseen + 40.0).all()


def test_the_same_seed_gives_the_same_models(dataset, trained, tmp_path):
    train(dataset, tmp_path, QUICK, lambda sentence: None)
    for name in (FOREST, NETWORK):
        assert (tmp_path / name).read_bytes() == (trained / name).read_bytes()
    assert read_card(tmp_path) == read_card(trained)


def test_too_little_to_learn_from_is_refused(dataset, tmp_path):
    with pytest.raises(ValueError, match="training families"):
        train(dataset.take(split(dataset).test), tmp_path, QUICK, lambda sentence: None)
