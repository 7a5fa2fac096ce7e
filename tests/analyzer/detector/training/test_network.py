"""Batches of whole traces, and what the network learns from labels of traces alone."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from torchtraceap.analyzer.detector import vocabulary
from torchtraceap.analyzer.detector.sequence import CHANNELS
from torchtraceap.analyzer.detector.training.batches import Batches
from torchtraceap.analyzer.detector.training.dataset import is_bad
from torchtraceap.analyzer.detector.training.fit_network import fit_network, predict
from torchtraceap.analyzer.detector.training.measures import auc, said_of
from torchtraceap.analyzer.detector.training.network import Network, Overall, Sizes
from torchtraceap.analyzer.detector.training.targets import make_targets

from .corpora import KINDS, LENGTH, made_dataset


@pytest.fixture(scope="module")
def dataset():
    return made_dataset(traces=60)


def test_an_epoch_has_one_step_of_one_variant_of_each_run(dataset):
    variants = replace(dataset, run=dataset.run // 2)
    batches = Batches(variants, np.ones(len(variants), dtype=bool), seed=0, traces_each=7)
    seen = list(batches.epoch())
    assert len(seen) == len(batches)
    windows = np.concatenate([batch.windows for batch in seen])
    assert len(np.unique(windows)) == len(windows)
    traces = np.unique(variants.trace[windows])
    assert sorted(variants.run[traces]) == sorted(set(variants.run))
    for trace in traces:
        of_trace = windows[variants.trace[windows] == trace]
        assert len(np.unique(variants.step[of_trace])) == 1
        step = variants.step[of_trace[0]]
        assert len(of_trace) == ((variants.trace == trace) & (variants.step == step)).sum()
    assert {int(window) for batch in batches.epoch() for window in batch.windows} != set(windows.tolist())


def test_what_is_taken_away_is_what_traces_lack(dataset):
    batches = Batches(dataset, np.ones(len(dataset), dtype=bool), seed=0, traces_each=60)
    without_shapes = 0
    for _ in range(20):
        for batch in batches.epoch():
            there = batch.token != vocabulary.PADDING
            before = dataset.token[batch.windows]
            assert not batch.figures[~there].any()
            changed = there & (batch.token != before)
            assert (batch.token[changed] == vocabulary.UNKNOWN).all()
            for trace in range(len(batch.traces)):
                mine = batch.figures[batch.place == trace]
                without_shapes += not mine[:, :, CHANNELS.index("work")].any()
                assert mine[:, :, CHANNELS.index("share")].any() or not there[batch.place == trace].any()
    assert 0.05 < without_shapes / (20 * dataset.traces) < 0.3


def test_the_network_is_small():
    assert sum(one.numel() for one in Network(len(CHANNELS), 300, 70).parameters()) < 400_000


def test_padding_says_nothing():
    torch.manual_seed(0)
    network = Network(len(CHANNELS), 4, len(KINDS)).eval()
    token = torch.randint(2, 100, (3, LENGTH))
    figures = torch.rand(3, LENGTH, len(CHANNELS))
    token[:, 9:] = vocabulary.PADDING
    features = torch.rand(3, 4)
    other = figures.clone()
    other[:, 9:] = 7.0
    with torch.inference_mode():
        for one, two in zip(network(token, figures, features), network(token, other, features), strict=True):
            torch.testing.assert_close(one, two)


def test_what_is_missing_and_what_is_far_away():
    overall = Overall(3, Sizes(features=5))
    known = np.array([[1.0, 10.0, np.nan], [2.0, 10.0, np.nan], [3.0, 10.0, np.nan]], dtype=np.float32)
    overall.learn_usual(known)
    assert overall.center.tolist() == [2.0, 10.0, 0.0]
    assert overall.scale[1:].tolist() == [1.0, 1.0]
    overall.eval()
    with torch.inference_mode():
        usual, missing, far, further = overall(
            torch.tensor([[2.0, 10.0, 0.0], [math.nan, 10.0, 0.0], [1e4, 10.0, 0.0], [1e9, 10.0, 0.0]])
        )
    assert not torch.equal(usual, missing)
    assert not torch.equal(usual, far)
    assert torch.equal(far, further)
    assert torch.isfinite(missing).all()


def test_labels_of_traces_alone_teach_about_windows():
    dataset = made_dataset(traces=240, windows=4, steps=1)
    weak = replace(dataset, label=np.full_like(dataset.label, np.nan))
    targets = make_targets(weak)
    assert not targets.is_labelled.any()
    network = fit_network(weak, targets, np.ones(len(weak), dtype=bool), seed=0, epochs=40)
    unseen = made_dataset(traces=100, windows=4, steps=1, seed=1)
    said = predict(network, unseen, np.arange(len(unseen)))
    assert auc(said_of(unseen, is_bad(unseen), said)) > 0.7
    bad = is_bad(unseen)
    assert (said[1][bad].argmax(axis=1) == unseen.label[bad].argmax(axis=1)).mean() > 0.45  # by chance 0.25


def test_training_leaves_other_random_numbers_alone(dataset):
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    fit_network(dataset, make_targets(dataset), np.ones(len(dataset), dtype=bool), seed=0, epochs=1)
    assert torch.equal(torch.rand(1), expected)
