"""The shipped models are loaded once, when first needed, and what is wrong with them is not tried again."""

import sys

import pytest

from tests.analyzer.detector.models import save_models
from tests.analyzer.detector.scored import layers
from torchtraceap.analyzer.analysis import analyze
from torchtraceap.analyzer.detector import scorer
from torchtraceap.analyzer.detector.scorer import Detector
from torchtraceap.analyzer.detector.session import DetectorError
from torchtraceap.analyzer.detector.shipped import Shipped


@pytest.fixture
def loads(monkeypatch, tmp_path):
    """The folder that stands for the shipped one, and a list that grows with each load."""
    counted = []
    load = Detector.load

    def counting():
        counted.append(1)
        return load(tmp_path)

    monkeypatch.setattr(scorer.Detector, "load", counting)
    return tmp_path, counted


def test_models_are_loaded_once_and_not_before_they_are_needed(loads):
    folder, counted = loads
    save_models(folder)
    shipped = Shipped()
    assert counted == []
    scores = [shipped.look(layers()).scores for _ in range(2)]
    assert counted == [1]
    assert len(scores[1].bad) == len(scores[1].windows) > 0


def test_an_analysis_holds_the_scores_and_their_usual_shares(loads):
    folder, _ = loads
    save_models(folder)
    analysis = analyze(layers().trace, detector=Shipped())
    assert analysis.failures == ()
    assert analysis.windows is not None
    assert analysis.windows.threshold == 0.5
    assert len(analysis.windows.usual_kind) == len(analysis.windows.kinds)
    assert 0 < analysis.windows.usual_bad < 1
    assert analyze(layers().trace).windows is None


def test_missing_models_are_said_and_not_looked_for_again(loads):
    _, counted = loads
    shipped = Shipped()
    analyses = [analyze(layers().trace, detector=shipped) for _ in range(2)]
    assert counted == [1]
    assert all(one.failures == analyses[0].failures for one in analyses)
    assert "the detector is left out: card.json cannot be read" in analyses[0].failures[0]
    with pytest.raises(DetectorError):
        shipped.look(layers())


def test_holding_the_shipped_detector_imports_no_runtime(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    Shipped()
