"""The JSON report is what its published schema says, to the letter."""

import json
import math
from dataclasses import replace

import jsonschema
import pytest

from torchtraceap.analyzer.findings import Tables
from torchtraceap.analyzer.report.json import json_schema, to_json

from .reports import EMPTY, EXPLAINED, FULL, REPORT, WINDOW

SCHEMA = json.loads(json_schema())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def refuse_constant(name):
    raise AssertionError(f"{name} is no JSON")


def test_the_schema_itself_is_valid():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("report", [REPORT, EMPTY, EXPLAINED])
def test_reports_validate(report):
    VALIDATOR.validate(json.loads(to_json(report), parse_constant=refuse_constant))


def test_the_keys_are_those_of_schema_1_in_their_order():
    document = json.loads(to_json(REPORT))
    assert list(document) == ["schema", "trace", "findings", "tables"]
    assert list(document["trace"]) == [
        "paths", "device", "steps", "step_us", "gpu_idle_pct", "step_idle_pct", "breakdown", "problems", "missing",
        "combined_saving_us_per_step", "combined_saving_pct", "model_type", "detector",
    ]  # fmt: skip
    finding = document["findings"][0]
    assert list(finding) == [
        "code", "slug", "severity", "title", "message", "cost_us_per_step", "saving_us_per_step", "saving_pct",
        "probability", "evidence", "location", "related", "fixes", "diagnosis", "stage", "removed_by",
        "stale",
    ]  # fmt: skip
    assert list(finding["evidence"][0]) == ["id", "name", "value", "unit", "events"]
    place = ["path", "line", "column", "end_line", "end_column", "qualname", "how", "confidence", "grain", "cell"]
    assert list(finding["location"]) == place
    assert list(finding["related"][0]["location"]) == list(finding["location"])
    assert list(finding["fixes"][0]) == ["id", "title", "safety", "edits"]


def test_windows_validate_and_keep_their_kinds():
    document = json.loads(to_json(REPORT))
    assert document["tables"]["windows"][0]["kinds"] == [{"slug": "unfused-attention", "probability": 0.61}]
    assert document["tables"]["single_windows"][0]["is_single"] is True
    assert document["trace"]["detector"]["worst"] == "forward: Attention_0"
    improbable = replace(REPORT, tables=Tables(windows=(replace(WINDOW, bad=1.5),)))
    errors = list(VALIDATOR.iter_errors(json.loads(to_json(improbable))))
    assert [error.absolute_path[-1] for error in errors] == ["bad"]


def test_values_survive():
    document = json.loads(to_json(REPORT))
    finding = document["findings"][0]
    assert finding["severity"] == "warning"
    assert finding["evidence"][0]["events"] == [12, 40, 41]
    assert finding["evidence"][1]["value"] == "16×6×144×144"
    assert finding["location"]["line"] == 22
    assert finding["fixes"][0]["edits"][1]["new_text"] == "import torch.nn.functional as F\n"
    assert document["findings"][1]["location"] is None
    assert document["trace"]["gpu_idle_pct"] is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_becomes_null(value):
    odd = replace(FULL, evidence=(replace(FULL.evidence[0], value=value),))
    document = json.loads(to_json(replace(REPORT, findings=(odd,))), parse_constant=refuse_constant)
    assert document["findings"][0]["evidence"][0]["value"] is None
    VALIDATOR.validate(document)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"saving_pct": 101.0}, "saving_pct"),
        ({"probability": -0.1}, "probability"),
        ({"slug": "Two Words"}, "slug"),
        ({"code": "601"}, "code"),
    ],
)
def test_the_schema_refuses_what_is_wrong(change, path):
    document = json.loads(to_json(replace(REPORT, findings=(replace(FULL, **change),))))
    errors = list(VALIDATOR.iter_errors(document))
    assert [error.absolute_path[-1] for error in errors] == [path]
