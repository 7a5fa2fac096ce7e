"""A run's part, and how parts become the corpus."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from bench.corpus import build as building  # noqa: E402
from bench.corpus.build import Settings, build, join, make_part  # noqa: E402
from bench.corpus.parts import CORPUS, MANIFEST, Parts  # noqa: E402
from bench.corpus.plan import Plan, devices_of, plan_runs  # noqa: E402
from torchtraceap.analyzer.detector.training.dataset import Dataset  # noqa: E402


def small_plan() -> Plan:
    plan = plan_runs(1, 0)[0]
    return replace(plan, slug="unfused-attention", more=0, training=False, families=("vit",))


def test_a_run_gives_its_traces_and_their_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(tmp_path / "out", 1, 0, "cpu", keep_traces=tmp_path / "traces")
    plan = small_plan()
    monkeypatch.setattr(building, "plan_runs", lambda runs, seed: [plan])
    outcome = make_part(plan, settings)
    corpus = join(settings)
    devices = devices_of(plan, "vit")
    assert outcome.failure == ""
    assert outcome.windows == len(corpus) > 4 * len(corpus.run) > 0
    is_full = corpus.variant == "full"
    assert sorted(corpus.device[is_full]) == sorted(["cpu", *devices])
    assert set(corpus.source) == {"cpu", "simulated"}
    place = corpus.kinds.tolist().index("unfused-attention")
    assert corpus.injected[:, place].all()
    shown = [(corpus.label[corpus.trace == trace, place] > 0).any() for trace in range(corpus.traces)]
    assert all(shown)
    others = np.delete(corpus.kinds, place)[np.delete(corpus.label, place, axis=1).any(axis=0)]
    assert set(others) <= {"launch-bound"}

    stored = Dataset.load(settings.out / CORPUS)
    assert np.array_equal(stored.features, corpus.features, equal_nan=True)
    manifest = json.loads((settings.out / MANIFEST).read_text("utf-8"))
    assert manifest["corpus"]["windows"] == len(corpus)
    assert [(row["family"], row["faults"]) for row in manifest["runs"]] == [("vit", ["unfused-attention"])]

    traces = sorted((tmp_path / "traces").iterdir())
    assert len(traces) == 1 + len(devices)
    assert not any(b"corpus." in gzip.decompress(trace.read_bytes()) for trace in traces)
    assert list(build(settings, 1)) == [], "it is not made again"
    assert not Parts(settings.out).has(replace(plan, seed=plan.seed + 1)), "but for another plan it would be"


def test_a_run_that_fails_is_told_of_and_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hopeless = replace(small_plan(), families=())
    monkeypatch.setattr(building, "plan_runs", lambda runs, seed: [hopeless])
    settings = Settings(tmp_path, 1, 0, "cpu")
    (outcome,) = build(settings, 1)
    assert outcome.failure == "ValueError: no family has room for unfused-attention"
    with pytest.raises(ValueError, match="holds no parts"):
        join(settings)
