"""The report as SARIF 2.1.0, for code-scanning services and editors that read it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

import msgspec

from ..findings import Finding, Fix, Location, Related, Report, Severity, TextEdit
from ..patterns.base import Pattern

SCHEMA_URI = "https://json.schemastore.org/sarif-2.1.0.json"
SOURCE_ROOT = "SRCROOT"
"""Base of every path: the folder given as source."""
LEVELS = {Severity.WARNING: "warning", Severity.INFORMATION: "note", Severity.HINT: "none"}

Json = dict[str, Any]


def to_sarif(report: Report, patterns: Iterable[Pattern], version: str) -> str:
    """The report as one SARIF run, indented, ending in a newline.

    `patterns` become the run's rules; a finding of a pattern not among them refers to its rule by id only.
    `version` is that of the tool.
    """
    rules = sorted(patterns, key=lambda pattern: pattern.code)
    index = {pattern.code: i for i, pattern in enumerate(rules)}
    run = {
        "tool": {
            "driver": {
                "name": "torchtraceap",
                "semanticVersion": version,
                "version": version,
                "rules": [_rule(pattern) for pattern in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {SOURCE_ROOT: {"description": _message("The source folder that was analyzed.")}},
        "invocations": [_invocation(report)],
        "results": [_result(finding, index) for finding in report.findings],
        "properties": {"trace": msgspec.to_builtins(report.trace)},
    }
    log = {"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(log), indent=2).decode() + "\n"


def _rule(pattern: Pattern) -> Json:
    return {
        "id": pattern.code,
        "name": pattern.slug,
        "shortDescription": _message(pattern.title),
        "properties": {"fix": pattern.fix.value, "group": pattern.group},
    }


def _invocation(report: Report) -> Json:
    """What went wrong while reading is told here, so that a viewer shows it beside the results."""
    notes = [{"level": "warning", "message": _message(problem)} for problem in report.trace.problems]
    return {"executionSuccessful": True, "toolExecutionNotifications": notes}


def _result(finding: Finding, rule_index: dict[str, int]) -> Json:
    result: Json = {
        "ruleId": finding.code,
        "level": LEVELS[finding.severity],
        "message": _message(f"{finding.message}; stale: {finding.stale}" if finding.stale else finding.message),
        "rank": min(max(finding.saving_pct, 0.0), 100.0),
        "partialFingerprints": {"torchtraceap/v1": _fingerprint(finding)},
        "properties": {
            "slug": finding.slug,
            "severity": finding.severity.value,
            "cost_us_per_step": finding.cost_us_per_step,
            "saving_us_per_step": finding.saving_us_per_step,
            "saving_pct": finding.saving_pct,
            "probability": finding.probability,
            "evidence": msgspec.to_builtins(finding.evidence),
        },
    }
    if finding.diagnosis is not None:
        result["properties"]["diagnosis"] = msgspec.to_builtins(finding.diagnosis)
    if finding.code in rule_index:
        result["ruleIndex"] = rule_index[finding.code]
    if finding.location is not None:
        result["locations"] = [_location(finding.location)]
    if finding.related:
        result["relatedLocations"] = [_related(i, related) for i, related in enumerate(finding.related)]
    if fixes := [_fix(fix) for fix in finding.fixes if all(edit.cell is None for edit in fix.edits)]:
        result["fixes"] = fixes
    return result


def _fingerprint(finding: Finding) -> str:
    """The same for the same fault after lines moved: pattern, file and function."""
    place = finding.location
    return f"{finding.slug}:{place.path}:{place.qualname}" if place else finding.slug


def _location(place: Location) -> Json:
    if place.cell is not None:  # a region would be one of the notebook's JSON
        return {
            "physicalLocation": {"artifactLocation": _artifact(place.path)},
            "logicalLocations": [{"fullyQualifiedName": f"cell {place.cell}", "kind": "module"}],
            "properties": {"cell": place.cell} | _region(place),
        }
    return {
        "physicalLocation": {
            "artifactLocation": _artifact(place.path),
            "region": _region(place),
        },
        "logicalLocations": [{"fullyQualifiedName": place.qualname, "kind": "function"}],
    }


def _related(number: int, related: Related) -> Json:
    return {"id": number, "message": _message(related.message)} | _location(related.location)


def _fix(fix: Fix) -> Json:
    by_path: dict[str, list[TextEdit]] = {}
    for edit in fix.edits:
        by_path.setdefault(edit.path, []).append(edit)
    return {
        "description": _message(fix.title),
        "artifactChanges": [
            {
                "artifactLocation": _artifact(path),
                "replacements": [
                    {"deletedRegion": _region(edit), "insertedContent": {"text": edit.new_text}} for edit in edits
                ],
            }
            for path, edits in by_path.items()
        ],
        "properties": {"id": fix.id, "safety": fix.safety.value},
    }


def _region(place: Location | TextEdit) -> Json:
    return {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }


def _artifact(path: str) -> Json:
    return {"uri": quote(path), "uriBaseId": SOURCE_ROOT}


def _message(text: str) -> Json:
    """A SARIF message. Braces are placeholders there, so literal ones are doubled."""
    return {"text": text.replace("{", "{{").replace("}", "}}")}
