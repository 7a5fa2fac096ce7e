"""Two voices on one finding: agreement raises its probability, disagreement lowers it, ignorance leaves it."""

from dataclasses import replace

import numpy as np
import pytest

from tests.analyzer.detector.scored import layers, region_of, scores_of
from torchtraceap.analyzer.assess import to_finding
from torchtraceap.analyzer.detector.agreement import MOST, SUREST, weigh
from torchtraceap.analyzer.findings import Severity
from torchtraceap.analyzer.patterns.base import Candidate, FixKind, Occurrence, Pattern
from torchtraceap.analyzer.timeline.edit import Edit, Scale

SLUG = "some-fault"
PATTERN = Pattern("TAP000", SLUG, "Some fault", FixKind.SAFE)


@pytest.fixture(scope="module")
def timeline():
    return layers()


def candidate_at(timeline, layer, **fields):
    """The linear operator of one layer is to blame, in each steady step; without it a step is shorter."""
    name = timeline.trace.names.index(f"nn.Module: Layer_{layer}")
    frames = np.flatnonzero(timeline.trace.name == name)
    rows = [int(timeline.tree.children(frame)[0]) for frame in frames[timeline.steps.are_steady(frames)]]
    occurrences = tuple(Occurrence(row, Edit(scales=(Scale(np.array([row]), 0.0),)), np.array([row])) for row in rows)
    return Candidate("it is slow", "something quick", occurrences, (), **fields)


def test_agreement_raises_and_disagreement_lowers(timeline):
    candidate = candidate_at(timeline, 3, probability=0.6)
    agreed = weigh(timeline, SLUG, candidate, scores_of(timeline, {region_of(timeline, 3): 0.95}))
    opposed = weigh(timeline, SLUG, candidate, scores_of(timeline, {region_of(timeline, 5): 0.95}, kind=0))
    assert agreed.probability > 0.75
    assert opposed.probability < 0.5
    assert [(one.id, one.value) for one in agreed.evidence] == [("detector", 0.93)]


def test_what_is_said_of_the_usual_share_changes_nothing(timeline):
    candidate = candidate_at(timeline, 3, probability=0.7)
    said = scores_of(timeline, {})
    usual = replace(said, usual_bad=0.05, usual_kind=said.kind[0])
    assert weigh(timeline, SLUG, candidate, usual).probability == pytest.approx(0.7, abs=1e-3)


def test_the_detector_alone_makes_no_hint_of_a_sure_rule(timeline):
    sure = candidate_at(timeline, 3)
    least = weigh(timeline, SLUG, sure, scores_of(timeline, {}, kind=0))
    odds = SUREST / (1 - SUREST) / np.exp(MOST)
    assert least.probability == pytest.approx(odds / (1 + odds), abs=1e-3)
    assert least.probability > 0.8
    rather_sure = weigh(timeline, SLUG, candidate_at(timeline, 3, probability=0.7), scores_of(timeline, {}, kind=0))
    assert 0.5 < rather_sure.probability < 0.55


def test_windows_are_weighed_by_the_time_that_a_finding_has_in_them(timeline):
    both = candidate_at(timeline, 3, probability=0.7).occurrences + candidate_at(timeline, 6).occurrences
    candidate = replace(candidate_at(timeline, 3, probability=0.7), occurrences=both)
    scores = scores_of(timeline, {region_of(timeline, 3): 0.9, region_of(timeline, 6): 0.5})
    assert weigh(timeline, SLUG, candidate, scores).evidence[0].value == pytest.approx(0.98 * 0.7, abs=0.01)


@pytest.mark.parametrize(
    "fields", [{"informational": True}, {"unmeasured": "shapes"}, {"needs_source": True}, {"occurrences": ()}]
)
def test_what_events_cannot_settle_has_one_voice(timeline, fields):
    candidate = replace(candidate_at(timeline, 3, probability=0.7), **fields)
    said = weigh(timeline, SLUG, candidate, scores_of(timeline, {region_of(timeline, 3): 0.99}))
    assert (said.probability, said.evidence) == (0.7, ())


def test_kinds_and_windows_that_the_detector_does_not_know_have_one_voice(timeline):
    candidate = candidate_at(timeline, 3, probability=0.7)
    scores = scores_of(timeline, {region_of(timeline, 3): 0.99})
    unknown = replace(scores, is_unknown=scores.windows.region == region_of(timeline, 3))
    for slug, said in (("another-fault", scores), (SLUG, unknown), (SLUG, None)):
        assert weigh(timeline, slug, candidate, said).probability == 0.7
        assert weigh(timeline, slug, candidate, said).evidence == ()


def test_what_is_rather_blamed_is_named(timeline):
    scores = scores_of(timeline, {region_of(timeline, 3): 0.9}, kind=2)
    said = weigh(timeline, SLUG, candidate_at(timeline, 3), scores)
    assert said.evidence[1].value == "unfused-attention (0.88)"


def test_severity_follows_the_probability_of_both(timeline):
    candidate = candidate_at(timeline, 3, probability=0.6)
    alone = to_finding(timeline, PATTERN, candidate)
    agreed = to_finding(timeline, PATTERN, candidate, scores=scores_of(timeline, {region_of(timeline, 3): 0.95}))
    opposed = to_finding(timeline, PATTERN, candidate, scores=scores_of(timeline, {}, kind=0))
    assert alone.severity is agreed.severity is Severity.WARNING
    assert opposed.severity is Severity.HINT
    assert opposed.saving_us_per_step == alone.saving_us_per_step
    unsure = replace(candidate, probability=0.4)
    raised = to_finding(timeline, PATTERN, unsure, scores=scores_of(timeline, {region_of(timeline, 3): 0.95}))
    assert to_finding(timeline, PATTERN, unsure).severity is Severity.HINT
    assert raised.severity is Severity.WARNING
