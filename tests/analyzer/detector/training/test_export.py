"""What onnxruntime says of an exported model is what the trained model says."""

import numpy as np
import onnxruntime
import pytest
import torch

from torchtraceap.analyzer.detector.card import FOREST, NETWORK
from torchtraceap.analyzer.detector.sequence import CHANNELS
from torchtraceap.analyzer.detector.training.export import export_forest
from torchtraceap.analyzer.detector.training.export_network import export_network
from torchtraceap.analyzer.detector.training.forest import fit_forest
from torchtraceap.analyzer.detector.training.network import Network
from torchtraceap.analyzer.detector.training.targets import make_targets

from .corpora import FEATURES, KINDS, LENGTH, made_dataset


def answers(path, **inputs):
    return onnxruntime.InferenceSession(str(path)).run(["bad", "kind"], inputs)


@pytest.fixture(scope="module")
def dataset():
    return made_dataset()


def test_forest(dataset, tmp_path):
    features = dataset.features.astype(np.float32)
    assert np.isnan(features).any()
    forest = fit_forest(features, make_targets(dataset), seed=0, jobs=1, trees=10)
    export_forest(forest, FEATURES, tmp_path)
    bad, kind = answers(tmp_path / FOREST, features=features)
    said_bad, said_kind = forest.predict(features)
    assert bad.shape == (len(dataset), 1) and kind.shape == (len(dataset), len(KINDS))
    np.testing.assert_allclose(bad[:, 0], said_bad, atol=1e-5)
    np.testing.assert_allclose(kind, said_kind, atol=1e-5)


def test_forest_on_values_at_its_thresholds(dataset, tmp_path):
    """A float32 value beside a float64 threshold falls to the same side."""
    features = dataset.features.astype(np.float32)
    forest = fit_forest(features, make_targets(dataset), seed=0, jobs=1, trees=10)
    thresholds = np.concatenate([tree.tree_.threshold for tree in forest.bad.estimators_])
    random = np.random.default_rng(0)
    at = random.choice(thresholds[np.isfinite(thresholds)], (500, FEATURES)).astype(np.float32)
    beside = np.nextafter(at, random.choice([-1e9, 1e9], at.shape).astype(np.float32))
    near = np.where(random.random(at.shape) < 0.5, at, beside)
    export_forest(forest, FEATURES, tmp_path)
    np.testing.assert_allclose(answers(tmp_path / FOREST, features=near)[0][:, 0], forest.predict(near)[0], atol=1e-5)


def test_network(dataset, tmp_path):
    torch.manual_seed(0)
    network = Network(len(CHANNELS), FEATURES, len(KINDS)).eval()
    network.overall.learn_usual(dataset.features.astype(np.float32))
    export_network(network, LENGTH, tmp_path)
    token, figures = dataset.token.astype(np.int64), dataset.figures.astype(np.float32)
    token[0], figures[0] = 0, 0  # a window without events
    features = dataset.features.astype(np.float32)
    features[1, ::2] = np.nan
    with torch.inference_mode():
        said = network(torch.from_numpy(token), torch.from_numpy(figures), torch.from_numpy(features))
    for given, expected in zip(
        answers(tmp_path / NETWORK, token=token, figures=figures, features=features), said, strict=True
    ):
        np.testing.assert_allclose(given, expected.numpy(), atol=1e-4)
