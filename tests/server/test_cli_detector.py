"""The detector on the command line: its windows on demand, off by an option, and told where it is missing."""

import json

import pytest

from tests.analyzer.detector.models import save_forest, save_models
from torchtraceap.analyzer.detector.card import FOREST
from torchtraceap.analyzer.detector.scorer import Detector

from .cli import LEAVES, TRACE, torchtraceap


@pytest.fixture
def models(monkeypatch, tmp_path):
    """The folder that stands for the shipped one."""
    load = Detector.load
    monkeypatch.setattr(Detector, "load", lambda: load(tmp_path))
    return tmp_path


def analyzed(*options):
    result = torchtraceap(
        "analyze", TRACE, "--source", LEAVES, "--fail-on", "never", "--select", "unfused-attention", *options
    )
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_windows_come_with_their_places_when_asked_for(models):
    save_models(models)
    report = json.loads(analyzed("--format", "json", "--windows"))
    rows = report["tables"]["windows"]
    assert len(rows) == report["trace"]["detector"]["windows"] > 5
    assert all(0 <= row["start_us"] < row["end_us"] <= 1.5 * report["trace"]["step_us"] for row in rows)
    assert {row["kinds"][0]["slug"] for row in rows} == {"launch-bound"}
    assert any(row["location"] and row["location"]["path"] == "src/vit.py" for row in rows)
    (finding,) = (one for one in report["findings"] if one["severity"] != "hint")
    assert any(one["id"] == "detector" for one in finding["evidence"])


def test_what_no_rule_explains_is_a_hint_on_its_line(models):
    save_models(models)
    save_forest(models / FOREST, {}, bias=3.0)
    hints = [line for line in analyzed("--select", "TAP991").splitlines() if "[unexplained-hot-window]" in line]
    assert hints
    assert all(line.startswith("src/") and ": hint: the detector takes this part" in line for line in hints)


def test_without_it_findings_have_the_word_of_their_rules_alone(models):
    save_models(models)
    report = json.loads(analyzed("--format", "json", "--no-detector", "--windows"))
    assert report["trace"]["detector"] is None
    assert report["tables"]["windows"] == []
    assert all(one["id"] != "detector" for finding in report["findings"] for one in finding["evidence"])


def test_a_missing_model_is_said_once(models):
    text = analyzed()
    assert text.count("the detector is left out: card.json cannot be read") == 1
    assert "[unfused-attention]" in text
