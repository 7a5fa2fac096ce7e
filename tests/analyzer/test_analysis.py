"""Running the rules: each for itself."""

import pytest

from tests.builders import TraceBuilder
from torchtraceap.analyzer.analysis import analyze
from torchtraceap.analyzer.patterns.base import Candidate, FixKind, Pattern


def test_a_rule_that_fails_costs_no_finding_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(timeline):
        yield Candidate("it is slow", "something quick", (), ())
        raise ZeroDivisionError("division by zero")

    def find(timeline):
        yield Candidate("it is slow", "something quick", (), ())

    rules = {"failing": fail, "working": find}
    patterns = [Pattern("TAP000", slug, slug, FixKind.ADVICE, rule) for slug, rule in rules.items()]
    monkeypatch.setattr("torchtraceap.analyzer.antipatterns.selected_patterns", lambda select, ignore: patterns)
    b = TraceBuilder(devices=())
    b.leaf("aten::add")
    analysis = analyze(b.build())
    assert [detected.pattern.slug for detected in analysis.detected] == ["working"]
    assert analysis.failures == ("the rule failing failed and found nothing: ZeroDivisionError: division by zero",)
