"""The JSON report, schema 1. `schema.json` beside this file describes it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ..findings import Report


def to_json(report: Report) -> str:
    """The report as one JSON object, indented, ending in a newline. A figure that is not a number becomes null."""
    document = {
        "schema": report.schema,
        "trace": report.trace,
        "findings": report.findings,
        "tables": report.tables,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def json_schema() -> str:
    """The JSON Schema (draft 2020-12) of what `to_json` writes."""
    return (Path(__file__).parent / "schema.json").read_text("utf-8")
