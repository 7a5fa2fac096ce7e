"""What only the detector finds: hot, recurring, known, dear, and held by no rule's candidate."""

from dataclasses import replace

import numpy as np
import pytest

from tests.analyzer.detector.scored import Saying, layers, region_of, scores_of
from tests.builders import TraceBuilder, row_of
from torchtraceap.analyzer.antipatterns import AntiPatternDetector
from torchtraceap.analyzer.assess import price_all
from torchtraceap.analyzer.detected import Options
from torchtraceap.analyzer.detector.session import DetectorError
from torchtraceap.analyzer.detector.windows import MOST_STEPS
from torchtraceap.analyzer.findings import Severity
from torchtraceap.analyzer.patterns.base import Candidate, FixKind, Occurrence, Pattern
from torchtraceap.analyzer.patterns.unexplained_hot_window import PATTERN
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.edit import Edit

ALONE = Options(select=(PATTERN.slug,))


@pytest.fixture(scope="module")
def timeline():
    return layers()


@pytest.fixture(autouse=True)
def _no_other_rules(monkeypatch):
    monkeypatch.setattr("torchtraceap.analyzer.antipatterns.all_patterns", lambda: ())


def found(timeline, scores, options=ALONE):
    analysis = AntiPatternDetector(options=options, detector=Saying(scores)).detect(timeline)
    assert analysis.failures == ()
    return [finding for finding in price_all(analysis, options) if finding.slug == PATTERN.slug]


def test_a_hot_part_that_no_rule_explains_is_a_hint(timeline):
    (finding,) = found(timeline, scores_of(timeline, {region_of(timeline, 3): 0.9}))
    assert finding.severity is Severity.HINT
    assert finding.message == (
        "the detector takes this part of the step for slow, and no rule says why: 1.00 of 8.00 ms per step; "
        "it looks like some-fault (0.88)"
    )
    assert finding.probability == pytest.approx(0.9)
    assert finding.saving_us_per_step == 0
    assert finding.cost_us_per_step == pytest.approx(1000, rel=0.01)
    evidence = {one.id: (one.name, one.value) for one in finding.evidence}
    assert "Layer_3" in evidence["part"][1]
    name, said = evidence["reason-1"]
    assert ":" not in name and "healthy windows have" in said


def test_it_stands_where_the_time_is_spent(timeline):
    scores = scores_of(timeline, {region_of(timeline, 3): 0.9})
    (detected,) = AntiPatternDetector(options=ALONE, detector=Saying(scores)).detect(timeline).detected
    anchors = [one.anchor for one in detected.candidate.occurrences]
    trace = timeline.trace
    assert {trace.names[trace.name[row]] for row in anchors} == {"aten::linear"}
    assert len({int(timeline.steps.of[row]) for row in anchors}) == MOST_STEPS


def test_neighbours_are_one_finding_told_by_the_dearest(timeline):
    hot = {region_of(timeline, layer): 0.9 for layer in (2, 3, 4)}
    said = Saying(scores_of(timeline, hot | {region_of(timeline, 6): 0.95}))
    findings = price_all(AntiPatternDetector(options=ALONE, detector=said).detect(timeline), ALONE)
    assert sorted(round(finding.cost_us_per_step, -2) for finding in findings) == [1000, 3000]
    assert len(said.asked) == 2


@pytest.mark.parametrize(
    ("bad", "fields"),
    [(0.79, {}), (0.9, {"threshold": 0.95}), (0.9, {"is_unknown": True}), (0.05, {})],
    ids=["lukewarm", "below the threshold", "unknown", "healthy"],
)
def test_what_is_not_hot_enough_or_not_known_is_left_alone(timeline, bad, fields):
    scores = scores_of(timeline, {region_of(timeline, 3): bad})
    if "is_unknown" in fields:
        fields = {"is_unknown": np.ones(len(scores.windows), dtype=np.bool_)}
    assert found(timeline, replace(scores, **fields)) == []


def test_what_takes_little_of_the_step_is_left_alone():
    b = TraceBuilder(devices=())
    for number in range(4):
        with b.step(number):
            with b.frame("nn.Module: Small_0"):
                b.leaf("aten::linear", us=100)
            for layer in range(8):
                with b.frame(f"nn.Module: Layer_{layer}"):
                    b.leaf("aten::linear", us=1000)
    timeline = build_timeline(b.build())
    assert "Small" in scores_of(timeline, {}).windows.regions[0]
    assert found(timeline, scores_of(timeline, {0: 0.95})) == []
    assert len(found(timeline, scores_of(timeline, {1: 0.95}))) == 1


def test_nothing_is_said_of_a_cold_start(timeline):
    cold = replace(timeline, steps=replace(timeline.steps, is_cold=True))
    assert found(cold, scores_of(timeline, {region_of(timeline, 3): 0.9})) == []


def explaining(timeline, layer):
    """A rule that finds something in one step of one layer."""
    name = timeline.trace.names.index(f"nn.Module: Layer_{layer}")
    row = int(timeline.tree.children(np.flatnonzero(timeline.trace.name == name)[-1])[0])
    candidate = Candidate("it is slow", "something quick", (Occurrence(row, Edit()),), ())
    return Pattern("TAP000", "some-rule", "", FixKind.ADVICE, lambda timeline: (candidate,))


@pytest.mark.parametrize("is_chosen", [True, False])
def test_what_a_rule_explains_needs_no_detector_chosen_or_not(timeline, monkeypatch, is_chosen):
    rule = explaining(timeline, 3)
    chosen = (rule, PATTERN) if is_chosen else (PATTERN,)
    monkeypatch.setattr("torchtraceap.analyzer.antipatterns.selected_patterns", lambda *names: chosen)
    monkeypatch.setattr("torchtraceap.analyzer.antipatterns.all_patterns", lambda: (rule, PATTERN))
    hot = {region_of(timeline, 3): 0.9, region_of(timeline, 6): 0.9}
    analysis = AntiPatternDetector(detector=Saying(scores_of(timeline, hot))).detect(timeline)
    slugs = [one.pattern.slug for one in analysis.detected]
    assert slugs == (["some-rule"] if is_chosen else []) + [PATTERN.slug]
    part = next(one for one in analysis.detected[-1].candidate.evidence if one.id == "part")
    assert "Layer_6" in str(part.value)


def test_without_a_detector_there_is_none(timeline):
    assert AntiPatternDetector(options=ALONE).detect(timeline).detected == ()


def test_a_detector_that_cannot_look_costs_no_finding_of_the_rules(timeline, monkeypatch):
    monkeypatch.setattr(
        "torchtraceap.analyzer.antipatterns.selected_patterns", lambda *names: (explaining(timeline, 3), PATTERN)
    )

    class Failing:
        def __init__(self, error):
            self.error = error

        def look(self, timeline):
            raise self.error

    refused = AntiPatternDetector(detector=Failing(DetectorError("card.json cannot be read"))).detect(timeline)
    broken = AntiPatternDetector(detector=Failing(ZeroDivisionError("division by zero"))).detect(timeline)
    assert [len(one.detected) for one in (refused, broken)] == [1, 1]
    assert refused.windows is broken.windows is None
    assert refused.failures == ("the detector is left out: card.json cannot be read",)
    assert broken.failures == ("the detector failed and is left out: ZeroDivisionError: division by zero",)


def test_device_work_stands_at_the_operator_that_launched_it():
    b = TraceBuilder()
    dear = []
    for number in range(4):
        with b.step(number):
            for layer in range(6):
                with b.frame(f"nn.Module: Layer_{layer}"):
                    b.leaf("aten::relu", us=20, kernel="elementwise", kernel_us=10)
                    dear.append(b.leaf("aten::linear", us=20, kernel="gemm", kernel_us=500))
            b.synchronize()
    trace = b.build()
    timeline = build_timeline(trace)
    scores = scores_of(timeline, dict.fromkeys(range(6), 0.9))
    (detected,) = AntiPatternDetector(options=ALONE, detector=Saying(scores)).detect(timeline).detected
    anchors = {one.anchor for one in detected.candidate.occurrences}
    assert detected.candidate.cost_us_per_step == pytest.approx(timeline.step_us)
    assert anchors <= {row_of(trace, handle) for handle in dear}
