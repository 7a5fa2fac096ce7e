"""Recorded traces and projects against what is known of them."""

from __future__ import annotations

import json

import pytest

from bench.projects import FACTOR, MEASUREMENTS
from bench.truth import check_trace
from tests.shared import SHARED, shared, shared_timeline, truth
from torchtraceap.analyzer.analysis import analyze_job
from torchtraceap.analyzer.antipatterns import AntiPatternDetector
from torchtraceap.analyzer.assess import price_all
from torchtraceap.analyzer.detected import Analysis
from torchtraceap.analyzer.findings import Finding, Severity
from torchtraceap.analyzer.patterns.registry import pattern_by_slug
from torchtraceap.analyzer.trace.read import read_trace

TRACES = sorted(path.name for path in SHARED.glob("traces/S*")) or ["S01_kineto_resnet50_w0_v100.json.gz"]
PROJECTS = sorted(path.parent.name for path in SHARED.glob("projects/*/truth.json")) or ["resnet_birds"]


def findings_of(name: str) -> list[Finding]:
    timeline = shared_timeline(name)
    return price_all(AntiPatternDetector().detect(timeline))


def analysis_of(name: str) -> Analysis:
    """Of a trace, or of the ranks of one job in a folder."""
    path = shared("traces", name)
    if path.is_dir():
        return analyze_job(map(read_trace, sorted(path.glob("*.json*"))))
    return AntiPatternDetector().detect(shared_timeline(f"traces/{name}"))


@pytest.mark.parametrize("name", TRACES)
def test_recorded_trace(name: str) -> None:
    lines = truth().get(name) or truth()[f"{name}/"]
    analysis = analysis_of(name)
    found = price_all(analysis)
    assert [f for f in found if f.saving_us_per_step > 1.02 * f.cost_us_per_step] == []
    checks = list(check_trace(name, lines, analysis.timeline, found))
    assert [check for check in checks if check.holds is False] == []


@pytest.mark.parametrize("project", PROJECTS)
def test_project_faults_are_found_near_their_measured_saving(project: str) -> None:
    known = json.loads(shared("projects", project, "truth.json").read_text(encoding="utf-8"))
    found = {finding.slug: finding for finding in findings_of(f"projects/{project}/trace.json.gz")}
    faults = [fault for fault in known["faults"] if pattern_by_slug(fault["slug"])]
    assert faults
    for fault in faults:
        finding = found[fault["slug"]]
        assert finding.severity is not Severity.HINT
        measured = [fault[name] for name in MEASUREMENTS if name in fault]
        assert any(one / FACTOR <= finding.saving_pct <= FACTOR * one for one in measured), (finding, measured)


@pytest.mark.parametrize("variant", ["trace", "trace_nostack", "trace_noshape"])
def test_layout_churn_is_found_whatever_was_recorded(variant: str) -> None:
    found = {finding.slug: finding for finding in findings_of(f"projects/unet_seg/{variant}.json.gz")}
    assert found["permute-contiguous-churn"].severity is Severity.WARNING
    assert ("trace-lacks-evidence" in found) == (variant != "trace")


@pytest.mark.parametrize("project", PROJECTS)
def test_evidence_cites_events_of_the_file_and_can_be_recomputed(project: str) -> None:
    name = f"projects/{project}/trace.json.gz"
    trace = shared_timeline(name).trace
    row_at = {int(position): row for row, position in enumerate(trace.file_index)}
    for finding in findings_of(name):
        cost = next((one for one in finding.evidence if one.id == "cost"), None)
        if cost is None or not cost.events:
            continue
        total_ms = sum(int(trace.dur_ns[row_at[event]]) for event in cost.events) / 1e6
        assert total_ms == pytest.approx(cost.value, rel=0.25)
