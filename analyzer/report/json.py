"""The JSON report, schema 1. `schema.json` beside this file describes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ..findings import Report


def to_json(report: Report) -> str:
    """The report as one JSON object, indented, ending in a newline. A figure that is not a number becomes null."""
    findings = msgspec.to_builtins(report.findings)
    for finding in findings:
        for place in _locations(finding):
            del place["confidence"]  # how sure a place is, is the editor's concern; schema 1 gives `how` it was found
    tables = msgspec.to_builtins(report.tables)
    for row in (row for table in tables.values() for row in table if row.get("location")):
        del row["location"]["confidence"]
    document = {"schema": report.schema, "trace": report.trace, "findings": findings, "tables": tables}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def json_schema() -> str:
    """The JSON Schema (draft 2020-12) of what `to_json` writes."""
    return (Path(__file__).parent / "schema.json").read_text("utf-8")


def _locations(finding: dict[str, Any]) -> list[dict[str, Any]]:
    """Every location inside a finding that was turned into plain values."""
    places = [related["location"] for related in finding["related"]]
    if finding["location"] is not None:
        places.append(finding["location"])
    return places
