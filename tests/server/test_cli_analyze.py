"""`torchtraceap analyze` on the bundled example and on what people get wrong."""

import gzip
import json
import re
import shutil

import jsonschema
import pytest
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as SarifLog

from torchtraceap.analyzer.report.json import json_schema

from .cli import LEAVES, ROOT, TRACE, torchtraceap


@pytest.fixture(scope="module")
def report():
    """The JSON report of the example, validated."""
    result = torchtraceap("analyze", TRACE, "--source", LEAVES, "--format", "json", "--fail-on", "never")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    jsonschema.Draft202012Validator(json.loads(json_schema())).validate(document)
    return document


def found(report, slug):
    return [finding for finding in report["findings"] if finding["slug"] == slug]


def source_line(finding):
    place = finding["location"]
    return (LEAVES / place["path"]).read_text("utf-8").splitlines()[place["line"] - 1].strip()


@pytest.mark.parametrize(
    ("slug", "path", "lines"),
    [
        ("dataloader-in-main-process", "src/data.py", ["return DataLoader("]),
        ("channels-last-missing", "src/train.py", ["model = LeafCNN("]),
        ("permute-contiguous-churn", "src/cnn.py", ["x = x.permute(0, 2, 3, 1)", "return x.permute(0, 3, 1, 2)"]),
        ("single-tensor-optimizer", "src/train.py", ["optimizer = torch.optim.AdamW("]),
        ("unfused-attention", "src/vit.py", ["attn = (q @ k", "attn = attn.softmax", "x = (attn @ v)"]),
    ],
)
def test_the_examples_faults_are_found_on_their_lines_with_a_fix(report, slug, path, lines):
    places = [finding for finding in found(report, slug) if finding["severity"] != "hint"]
    assert places, f"no {slug}"
    for finding in places:
        assert finding["location"]["path"] == path
        assert any(source_line(finding).startswith(line) for line in lines), source_line(finding)
        assert finding["saving_us_per_step"] > 0
        assert finding["fixes"]


def test_findings_that_matter_name_a_file_of_the_example(report):
    for finding in report["findings"]:
        if finding["location"] is not None:
            assert (LEAVES / finding["location"]["path"]).is_file()


def test_evidence_points_at_events_of_the_file(report):
    count = len(json.loads(gzip.decompress(TRACE.read_bytes()))["traceEvents"])
    events = [event for finding in report["findings"] for item in finding["evidence"] for event in item["events"]]
    assert events
    assert all(0 <= event < count for event in events)


def test_text_names_line_severity_saving_and_fix(monkeypatch):
    monkeypatch.chdir(LEAVES)
    result = torchtraceap("analyze", TRACE)
    assert re.search(r"^src/vit\.py:\d+:\d+: (warning|information): .+ would save about .+ ms", result.stdout, re.M)
    assert re.search(r"^\s+fix\s+.+ \[safe\]$", result.stdout, re.M)
    assert "\x1b" not in result.stdout
    assert result.stderr == ""


def test_exit_codes_follow_the_worst_severity(report):
    severities = {finding["severity"] for finding in report["findings"]}
    for level, counted in (("warning", {"warning"}), ("information", {"warning", "information"})):
        result = torchtraceap("analyze", TRACE, "--source", LEAVES, "--fail-on", level)
        assert result.exit_code == int(bool(severities & counted))


def test_nothing_selected_is_clean():
    result = torchtraceap("analyze", TRACE, "--source", LEAVES, "--select", "tf32-off", "--fail-on", "hint")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "no findings")


def test_ignored_and_selected_patterns():
    result = torchtraceap("analyze", TRACE, "--source", LEAVES, "--format", "json", "--ignore", "TAP601,TAP801")
    slugs = {finding["slug"] for finding in json.loads(result.stdout)["findings"]}
    assert "dataloader-in-main-process" in slugs
    assert not slugs & {"unfused-attention", "single-tensor-optimizer"}


def test_a_saving_below_the_threshold_is_a_hint(report):
    largest = max(finding["saving_pct"] for finding in report["findings"])
    arguments = ("--source", LEAVES, "--format", "json", "--min-saving", str(min(largest + 1, 100)))
    result = torchtraceap("analyze", TRACE, *arguments)
    severities = {finding["severity"] for finding in json.loads(result.stdout)["findings"] if finding["saving_pct"]}
    assert severities == {"hint"}
    assert result.exit_code == 0


def test_sarif_is_written_where_asked(tmp_path):
    target = tmp_path / "out.sarif"
    result = torchtraceap("analyze", TRACE, "--source", LEAVES, "--format", "sarif", "--output", target)
    assert result.stdout == ""
    SarifLog.model_validate_json(target.read_text("utf-8"))


@pytest.mark.parametrize("name", ["S08_*", "S14_*", "S16_*", "S20_*", "S23_*"])
def test_reports_of_recorded_traces_are_valid(name):
    """GPU, GPU only, a folder of ranks, AMD, CPU without stacks."""
    traces = ROOT.parent / "shared" / "traces"
    if not traces.is_dir():
        pytest.skip("../shared/traces is not there")
    (path,) = traces.glob(name)
    document = json.loads(torchtraceap("analyze", path, "--source", LEAVES, "--format", "json").stdout)
    jsonschema.Draft202012Validator(json.loads(json_schema())).validate(document)
    assert document["trace"]["step_us"] > 0
    SarifLog.model_validate_json(torchtraceap("analyze", path, "--source", LEAVES, "--format", "sarif").stdout)


def test_without_the_source_there_are_findings_but_no_lines(tmp_path):
    result = torchtraceap("analyze", TRACE, "--format", "json", "--source", tmp_path)
    findings = json.loads(result.stdout)["findings"]
    assert findings
    assert all(finding["location"] is None and not finding["fixes"] for finding in findings)


def test_a_folder_and_a_glob_of_ranks_make_one_report(tmp_path):
    for rank in range(2):
        shutil.copy(TRACE, tmp_path / f"rank{rank}.pt.trace.json.gz")
    for argument in (tmp_path, tmp_path / "rank*.json.gz"):
        result = torchtraceap("analyze", argument, "--source", LEAVES, "--format", "json")
        document = json.loads(result.stdout)
        assert len(document["trace"]["paths"]) == 2
        assert "seen in 2 of 2 recordings" in found(document, "unfused-attention")[0]["message"]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"", "empty.json"),
        (b"no json at all", "text.json"),
        (b"\x1f\x8b\x08nonsense", "bad.json.gz"),
        (b"{}", "object.json"),
        (b"[", "cut.json"),
        (b'{"traceEvents": []}', "nothing.json"),
    ],
)
def test_what_is_no_trace_is_an_error_not_a_crash(tmp_path, content, name):
    (tmp_path / name).write_bytes(content)
    result = torchtraceap("analyze", tmp_path / name, "--source", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert name in result.stderr


def test_one_bad_trace_among_good_ones_still_shows_the_good_ones(tmp_path):
    shutil.copy(TRACE, tmp_path / "good.json.gz")
    (tmp_path / "bad.json").write_text("[")
    result = torchtraceap("analyze", tmp_path, "--source", LEAVES, "--fail-on", "never")
    assert result.exit_code == 2
    assert "[unfused-attention]" in result.stdout
    assert "bad.json" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.json"], "nowhere.json: no such file or folder"),
        (["*.nothing"], "*.nothing: no such file or folder"),
        (["."], ".: no trace there"),
        ([TRACE, "--select", "no-such-rule"], "no such pattern: no-such-rule"),
        ([TRACE, "--source", "nowhere"], "nowhere"),
        ([TRACE, "--min-saving", "lots"], "lots"),
        ([TRACE, "--min-saving", "nan"], "not a number"),
        ([], "PATH"),
    ],
)
def test_wrong_arguments_exit_with_2_and_say_what_is_wrong(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    result = torchtraceap("analyze", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_counters_of_nsight_compute_are_joined(tmp_path):
    counters = tmp_path / "counters.csv"
    counters.write_text('"ID","Kernel Name","dram__bytes_read.sum"\n"","","Kbyte"\n"0","gemm","3"\n', "utf-8")
    arguments = ("analyze", TRACE, "--source", LEAVES, "--format", "json", "--fail-on", "never", "--ncu", counters)
    result = torchtraceap(*arguments)
    assert result.exit_code == 0, result.stderr
    (row,) = json.loads(result.stdout)["tables"]["counters"]
    assert (row["kernel"], row["launches"], row["us_per_step"]) == ("gemm", 1, None)
    counters.write_text("no table\n", "utf-8")
    result = torchtraceap(*arguments)
    assert result.exit_code == 2
    assert "no counters of kernels" in result.stderr
