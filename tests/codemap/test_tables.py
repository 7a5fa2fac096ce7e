"""The tables of a report, with the places of their rows."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest

from tests.shared import shared, shared_timeline
from torchtraceap.analyzer.analysis import analyze
from torchtraceap.analyzer.detected import Options
from torchtraceap.analyzer.findings import SampleRow
from torchtraceap.analyzer.report.json import json_schema, to_json
from torchtraceap.analyzer.trace.read import read_trace
from torchtraceap.analyzer.trace.recording import DEVICE, Recording
from torchtraceap.codemap.place import place
from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.tables import tables


def test_attention_layers_come_with_their_lines_and_validate() -> None:
    folder = shared("projects", "posekit")
    report = place(analyze(read_trace(folder / "trace.json.gz")), open_workspace(folder))
    rows = report.tables.attention
    assert rows and all(row.backend == "unfused" for row in rows)
    assert {(row.location.path, row.location.line) for row in rows if row.location} <= {
        ("src/backbone.py", line) for line in range(20, 30)
    }
    assert all(row.location for row in rows)
    document = json.loads(to_json(report))
    jsonschema.validate(document, json.loads(json_schema()))
    assert [row["heads"] for row in document["tables"]["attention"]] == [row.heads for row in rows]


def test_without_a_workspace_rows_have_no_place() -> None:
    found = tables(shared_timeline("traces/S08_tracelens_vit_h100.json.gz")).attention
    assert [(row.backend, row.heads, row.head_dim, row.query_tokens) for row in found] == [("flash", 12, 64, 197)] * 12
    assert all(row.location is None for row in found)
    assert all(row.compute_ratio == pytest.approx(1.0) for row in found)


def test_layout_changes_and_feature_maps_come_with_their_lines_and_validate() -> None:
    folder = shared("projects", "unet_seg")
    analysis = analyze(read_trace(folder / "trace.json.gz"))
    workspace = open_workspace(folder)
    assert not place(analysis, workspace).tables.feature_maps, "there are many: only those who ask get them"
    report = place(analysis, workspace, Options(with_feature_maps=True))
    changes = {(row.change, row.location.line) for row in report.tables.layout_changes if row.location}
    assert {("NCHW -> NHWC", 46), ("NHWC -> NCHW", 48)} & changes
    first = report.tables.feature_maps[0]
    assert (first.op, first.input_shape, first.output_shape) == ("conv2d", (4, 4, 128, 128), (4, 16, 128, 128))
    assert first.location is not None and (first.location.path, first.location.line) == ("src/unet_notebook.py", 69)
    jsonschema.validate(json.loads(to_json(report)), json.loads(json_schema()))


def test_counters_come_with_the_report_and_validate() -> None:
    analysis = analyze(shared_timeline("traces/S18_hta_cupti_counters_alexnet.json.gz").trace)
    report = place(analysis, None)
    rows = {row.kernel: row for row in report.tables.counters}
    sgemm = rows["ampere_sgemm_32x32_sliced1x4_tn"]
    assert (sgemm.launches, sgemm.us_per_step, sgemm.dram_bytes) == (6, None, None)
    assert sgemm.flops == pytest.approx(5.03e9, rel=0.01)
    jsonschema.validate(json.loads(to_json(report)), json.loads(json_schema()))


def test_what_the_driver_said_while_recording_is_told() -> None:
    trace = shared_timeline("traces/S08_tracelens_vit_h100.json.gz").trace
    figures = {"gpu_busy_pct_mean": 63.0, "gpu_busy_pct_max": 98.0, "samples": 12.0, "odd_mean": 1.0}
    recorded = replace(trace, recording=Recording(counters={DEVICE: figures}))
    report = place(analyze(recorded), None)
    assert report.tables.device_samples == (SampleRow("gpu_busy_pct", 63.0, 98.0),)
    jsonschema.validate(json.loads(to_json(report)), json.loads(json_schema()))
