"""The rules through their one class: by family, by group, by name."""

from __future__ import annotations

import pytest

from tests.builders import TraceBuilder
from torchtraceap.analyzer.antipatterns import AntiPatternDetector
from torchtraceap.analyzer.detected import Options
from torchtraceap.analyzer.patterns.base import FixKind, Pattern
from torchtraceap.analyzer.patterns.registry import all_patterns
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.family import Family


def three_passes() -> TraceBuilder:
    """Attention in separate passes, four steps on the CPU."""
    b = TraceBuilder(devices=())
    scores, tokens, heads = (8, 6, 256, 256), (8, 6, 256, 64), (8, 6, 64, 256)
    for number in range(4):
        with b.step(number):
            b.leaf("aten::matmul", us=800, shapes=[tokens, heads])
            b.leaf("aten::softmax", us=900, shapes=[scores])
            b.leaf("aten::matmul", us=800, shapes=[scores, tokens])
    return b


def test_every_rule_is_in_the_pattern_db_by_slug() -> None:
    database = AntiPatternDetector().pattern_db
    assert list(database) == [pattern.slug for pattern in all_patterns()]
    assert database["unfused-attention"].code == "TAP601"


def test_check_gives_priced_findings() -> None:
    findings = AntiPatternDetector("vit").check(build_timeline(three_passes().build()))
    found = {finding.slug: finding for finding in findings}
    assert found["unfused-attention"].saving_us_per_step > 500


def test_groups_are_asked_for_by_name() -> None:
    detector = AntiPatternDetector()
    assert {"inefficient_conv", "attention_bottleneck"} <= set(detector.groups)
    by_group = {
        group: {p.code[:4] for p in detector.pattern_db.values() if p.group == group} for group in detector.groups
    }
    assert by_group["inefficient_conv"] == {"TAP5"}
    assert by_group["attention_bottleneck"] == {"TAP6"}
    timeline = build_timeline(three_passes().build())
    assert "unfused-attention" in {f.slug for f in detector.check(timeline, ["attention_bottleneck"])}
    assert not detector.check(timeline, ["inefficient_conv"])
    with pytest.raises(ValueError, match="no group"):
        detector.check(timeline, ["no such group"])


def test_rules_of_another_family_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    swin = Pattern(
        "TAP000", "swin-only", "", FixKind.ADVICE, lambda timeline: (), families=frozenset({Family.WINDOWED})
    )
    everybody = Pattern("TAP001", "for-all", "", FixKind.ADVICE, lambda timeline: ())
    monkeypatch.setattr("torchtraceap.analyzer.antipatterns.selected_patterns", lambda *names: (swin, everybody))
    assert set(AntiPatternDetector("windowed").pattern_db) == {"swin-only", "for-all"}
    assert set(AntiPatternDetector("cnn").pattern_db) == {"for-all"}
    assert set(AntiPatternDetector("auto").pattern_db) == {"swin-only", "for-all"}


def test_names_select_and_ignore() -> None:
    assert set(AntiPatternDetector(options=Options(select=("TAP601",))).pattern_db) == {"unfused-attention"}
    assert "unfused-attention" not in AntiPatternDetector(options=Options(ignore=("unfused-attention",))).pattern_db


def test_an_unknown_model_type_is_refused() -> None:
    with pytest.raises(ValueError, match="no model type 'resnet'"):
        AntiPatternDetector("resnet")
