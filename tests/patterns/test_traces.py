"""Each rule on its own traces: `<slug>/traces.py` holds `positive_*` and `negative_*` functions that build them.

A scene is one trace, or those of the ranks of one job.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from torchtraceap.analyzer.analysis import analyze, analyze_job
from torchtraceap.analyzer.assess import price_all, to_finding
from torchtraceap.analyzer.detected import DEFAULTS, Analysis, Options
from torchtraceap.analyzer.findings import Finding, Severity
from torchtraceap.analyzer.patterns.registry import all_patterns
from torchtraceap.analyzer.trace.model import Trace

RECORDED_MIN_SAVING_PCT = 0.2
HERE = Path(__file__).parent
Scene = Callable[[], Trace | list[Trace]]
SENTENCE = re.compile(r"[^:;]+: \d[\d.]* of \d[\d.]* ms per step; .+ would save about \d[\d.]* ms \((under 1|\d+) %\)")


@cache
def _all_scenes() -> tuple[tuple[str, str, Scene], ...]:
    """Slug, name and function of every scene; a scene is built, or recorded, once per process."""
    found = []
    for path in sorted(HERE.glob("*/traces.py")):
        slug = path.parent.name
        spec = importlib.util.spec_from_file_location(f"tests.patterns.{slug}.traces", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found += [
            (slug, name, cache(build))
            for name, build in vars(module).items()
            if name.startswith(("positive_", "negative_"))
        ]
    return tuple(found)


def scenes(prefix: str) -> list:
    """Parameters of the scenes whose names begin with `prefix`: slug and function."""
    return [
        pytest.param(slug, build, id=f"{slug}-{name}") for slug, name, build in _all_scenes() if name.startswith(prefix)
    ]


def _analyzed(build: Scene, options: Options = DEFAULTS) -> Analysis:
    scene = build()
    return analyze_job(scene, options) if isinstance(scene, list) else analyze(scene, options)


def _findings(slug: str, analysis: Analysis, min_saving_pct: float = DEFAULTS.min_saving_pct) -> list[Finding]:
    options = Options(min_saving_pct, select=(slug,))
    return [to_finding(analysis.timeline, d.pattern, d.candidate, options) for d in analysis.detected]


@pytest.mark.parametrize(("slug", "build"), scenes("positive_"))
def test_fault_is_found(slug: str, build: Scene, request: pytest.FixtureRequest) -> None:
    analysis = _analyzed(build, Options(select=(slug,)))
    # What is recorded anew each time costs now more, now less on a busy machine.
    is_recorded = "recorded" in request.node.name
    findings = _findings(slug, analysis, RECORDED_MIN_SAVING_PCT if is_recorded else DEFAULTS.min_saving_pct)
    shown = [finding for finding in findings if finding.severity is not Severity.HINT]
    assert shown, findings
    for finding in shown:
        assert finding.slug == slug
        if finding.saving_us_per_step:
            assert SENTENCE.fullmatch(finding.message), finding.message
        for evidence in finding.evidence:
            assert np.isin(evidence.events, analysis.timeline.trace.file_index).all()


@pytest.mark.parametrize(("slug", "build"), scenes("positive_"))
def test_occurrences_can_be_placed_and_regrouped(slug: str, build: Scene) -> None:
    analysis = _analyzed(build, Options(select=(slug,)))
    for detected in analysis.detected:
        anchors = [occurrence.anchor for occurrence in detected.candidate.occurrences]
        assert len(set(anchors)) == len(anchors)
        steps = analysis.timeline.steps.of[anchors]
        assert not analysis.timeline.steps.is_warmup[steps].any()


@pytest.mark.parametrize(("slug", "build"), scenes(""))
def test_every_rule_can_read_every_trace(slug: str, build: Scene) -> None:
    analysis = _analyzed(build)
    for finding in price_all(analysis):
        assert 0 <= finding.saving_us_per_step <= analysis.timeline.step_us * 1.001
        assert finding.cost_us_per_step >= 0


@pytest.mark.parametrize(("slug", "build"), scenes("negative_"))
def test_harmless_code_stays_silent(slug: str, build: Scene) -> None:
    findings = _findings(slug, _analyzed(build, Options(select=(slug,))))
    assert [f.message for f in findings if f.severity is not Severity.HINT] == []


@pytest.mark.parametrize(
    "pattern", [one for one in all_patterns() if one.compare is None], ids=lambda pattern: pattern.slug
)
def test_every_pattern_has_faults_and_harmless_traces(pattern) -> None:
    counts = {
        prefix: sum(scene.values[0] == pattern.slug for scene in scenes(prefix))
        for prefix in ("positive_", "negative_")
    }
    assert counts["positive_"] >= 2 and counts["negative_"] >= 2
