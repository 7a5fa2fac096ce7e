"""The SARIF report against models generated from the standard's own JSON Schema, which forbid unknown properties."""

import json

import pytest
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as SarifLog

from torchtraceap.analyzer.patterns.base import FixKind, Pattern
from torchtraceap.analyzer.report.sarif import to_sarif

from .reports import EMPTY, REPORT

PATTERNS = (
    Pattern("TAP990", "trace-lacks-evidence", "The trace lacks evidence", FixKind.ADVICE, lambda _: ()),
    Pattern("TAP601", "unfused-attention", "Attention without a fused kernel", FixKind.SAFE, lambda _: ()),
)


def run_of(report):
    return json.loads(to_sarif(report, PATTERNS, "1.2.3"))["runs"][0]


@pytest.mark.parametrize("report", [REPORT, EMPTY])
@pytest.mark.parametrize("patterns", [PATTERNS, ()])
def test_the_log_is_valid(report, patterns):
    SarifLog.model_validate_json(to_sarif(report, patterns, "1.2.3"))


def test_rules_are_referred_to_by_id_and_index():
    run = run_of(REPORT)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["TAP601", "TAP990"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]


def test_severities_and_places():
    warning, information, hint = run_of(REPORT)["results"]
    assert [result["level"] for result in (warning, information, hint)] == ["warning", "note", "none"]
    place = warning["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "src/vit.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 22, "startColumn": 9, "endLine": 22, "endColumn": 13}
    assert "locations" not in information


def test_paths_are_uris_and_braces_no_placeholders():
    warning, information, _ = run_of(REPORT)["results"]
    related = warning["relatedLocations"][0]
    assert related["physicalLocation"]["artifactLocation"]["uri"] == "src/tr%C3%A4in.py"
    assert "{{none}}" in information["message"]["text"]


def test_fixes_hold_every_edit():
    change = run_of(REPORT)["results"][0]["fixes"][0]["artifactChanges"]
    assert [edit["insertedContent"]["text"] for edit in change[0]["replacements"]] == [
        "x = F.scaled_dot_product_attention(q, k, v)",
        "import torch.nn.functional as F\n",
    ]


def test_a_finding_keeps_its_fingerprint_when_lines_move():
    results = run_of(REPORT)["results"]
    assert results[0]["partialFingerprints"] == results[2]["partialFingerprints"]
    assert results[0]["partialFingerprints"] != results[1]["partialFingerprints"]


def test_reading_problems_are_told():
    notes = run_of(REPORT)["invocations"][0]["toolExecutionNotifications"]
    assert [note["message"]["text"] for note in notes] == ["2 events without a duration, first at byte 812"]
