"""The whole codemap: rules' candidates on lines, joined, parted, confirmed, silenced; and real projects with faults."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from torchtraceap.analyzer.analysis import analyze
from torchtraceap.analyzer.detected import Analysis, Detected
from torchtraceap.analyzer.findings import Fix, How, Report, Safety, Severity, Tables
from torchtraceap.analyzer.patterns.base import Candidate, FixKind, Occurrence, Pattern
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.edit import Edit
from torchtraceap.analyzer.timeline.family import Family
from torchtraceap.analyzer.trace.read import read_trace
from torchtraceap.codemap.fixes.base import Case, Confirmation, Cure, Fixer
from torchtraceap.codemap.fixes.registry import fixers
from torchtraceap.codemap.place import place
from torchtraceap.codemap.project import open_workspace

from ..builders import TraceBuilder, row_of

PROJECTS = Path(__file__).parents[3] / "shared" / "projects"
SHOWN = (Severity.WARNING, Severity.INFORMATION)

MODEL = """\
import torch


def block(x):
    x = x.exp()
    x = x.sin()
    return x.exp()


def main(x):
    for _ in range(4):
        x = block(x)
"""


def pattern(slug: str) -> Pattern:
    return Pattern("TAP000", slug, "A pattern", FixKind.ADVICE, lambda timeline: ())


def recorded(slug: str, *, ops: dict[str, int], whole: bool = False) -> Analysis:
    """Four steps of `main`; the candidate's occurrences are the named operators (which one of each in a step)."""
    b = TraceBuilder(devices=())
    handles = []
    with b.frame("model.py(10): main"):
        for step in range(4):
            with b.step(step), b.frame("model.py(4): block"):
                for number, name in enumerate(("exp", "sin", "exp")):
                    with b.frame(f"<built-in method {name} of Tensor object at 0x7f>"):
                        handle = b.leaf(f"aten::{name}", us=100)
                    if ops.get(name, -1) in (number, 9):
                        handles.append(handle)
    trace = b.build()
    rows = [row_of(trace, handle) for handle in handles]
    occurrences = tuple(Occurrence(row, Edit(removed_ops=np.array([row])), cost_rows=np.array([row])) for row in rows)
    parts = [occurrences] if whole else [(one,) for one in occurrences]
    detected = [Detected(pattern(slug), Candidate("work is repeated", "a cache", part, ())) for part in parts]
    return Analysis(build_timeline(trace), tuple(detected))


def placed(analysis: Analysis, root: Path, text: str = MODEL) -> Report:
    (root / "model.py").write_text(text)
    return place(analysis, open_workspace(root))


def lines(report: Report) -> list[int | None]:
    return sorted(f.location.line if f.location else 0 for f in report.findings)


def test_candidates_of_one_statement_become_one_finding_with_their_saving_added(tmp_path: Path) -> None:
    apart = recorded("made-up", ops={"sin": 1})
    together = recorded("made-up", ops={"sin": 1}, whole=True)
    reports = [placed(analysis, tmp_path) for analysis in (apart, together)]
    assert len(apart.detected) == 4 and [lines(report) for report in reports] == [[6], [6]]
    savings = [report.findings[0].saving_us_per_step for report in reports]
    assert savings[0] == pytest.approx(savings[1]) and savings[0] > 50


def test_one_candidate_over_two_statements_is_parted(tmp_path: Path) -> None:
    report = placed(recorded("made-up", ops={"exp": 9}, whole=True), tmp_path)
    assert lines(report) == [5, 7]
    whole = place(recorded("made-up", ops={"exp": 9}, whole=True), None).findings[0]
    assert sum(f.saving_us_per_step for f in report.findings) == pytest.approx(whole.saving_us_per_step, rel=0.01)
    assert sum(f.cost_us_per_step for f in report.findings) == pytest.approx(whole.cost_us_per_step, rel=0.01)


def test_callers_are_related_and_dearer_findings_come_first(tmp_path: Path) -> None:
    report = placed(recorded("made-up", ops={"exp": 9, "sin": 1}), tmp_path)
    savings = [f.saving_us_per_step for f in report.findings]
    assert savings == sorted(savings, reverse=True)
    related = report.findings[0].related
    assert [(r.message, r.location.line) for r in related] == [("called from main", 12)]


def test_a_comment_silences_its_line_only(tmp_path: Path) -> None:
    text = MODEL.replace("x = x.sin()", "x = x.sin()  # torchtraceap: ignore[made-up]")
    assert lines(placed(recorded("made-up", ops={"exp": 0, "sin": 1}), tmp_path, text)) == [5]


@pytest.mark.parametrize(
    ("words", "is_elsewhere", "severity"),
    [
        ("cos", False, Severity.HINT),
        ("cos", True, Severity.HINT),
        ("range", False, Severity.WARNING),
        ("range", True, Severity.HINT),
        ("tan", True, Severity.WARNING),
    ],
)
def test_a_fault_whose_cure_the_source_holds_was_recorded_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, is_elsewhere: bool, severity: Severity
) -> None:
    fixer = Fixer("made-up", lambda case: None, cure=Cure(re.compile(words), is_elsewhere))
    monkeypatch.setattr("torchtraceap.codemap.place.fixer_of", {"made-up": fixer}.get)
    text = MODEL.replace("return x.exp()", "return x.exp() + x.cos()")
    (found,) = placed(recorded("made-up", ops={"sin": 1}), tmp_path, text).findings
    assert found.severity is severity
    assert ("record again" in [evidence.value for evidence in found.evidence]) == (severity is Severity.HINT)


def test_a_fixer_that_fails_costs_its_own_fix_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(case: Case) -> Confirmation | None:
        raise LookupError("no such thing")

    monkeypatch.setattr("torchtraceap.codemap.place.fixer_of", {"made-up": Fixer("made-up", fail)}.get)
    report = placed(recorded("made-up", ops={"sin": 1}), tmp_path)
    assert lines(report) == [6]
    assert report.trace.problems[-1] == "the fix of made-up failed: LookupError: no such thing"


@pytest.mark.parametrize(("required", "severity"), [(True, Severity.HINT), (False, Severity.WARNING)])
def test_an_unconfirmed_finding_is_a_hint_where_the_source_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, required: bool, severity: Severity
) -> None:
    fixer = Fixer("made-up", lambda case: None, required=required)
    monkeypatch.setattr("torchtraceap.codemap.place.fixer_of", {"made-up": fixer}.get)
    report = placed(recorded("made-up", ops={"sin": 1}), tmp_path)
    assert [f.severity for f in report.findings] == [severity]


@pytest.mark.parametrize(("is_wanted", "severity"), [(True, Severity.HINT), (False, Severity.WARNING)])
def test_what_the_source_needs_is_no_more_than_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_wanted: bool, severity: Severity
) -> None:
    fixer = Fixer("made-up", lambda case: Confirmation(case.location, is_wanted=is_wanted))
    monkeypatch.setattr("torchtraceap.codemap.place.fixer_of", {"made-up": fixer}.get)
    report = placed(recorded("made-up", ops={"sin": 1}), tmp_path)
    assert [f.severity for f in report.findings] == [severity]


def test_a_confirmation_moves_the_finding_and_brings_its_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def confirm(case: Case) -> Confirmation:
        there = replace(case.location, line=11, end_line=11)
        fix = Fix("made-up", "Cache it", Safety.UNSAFE, ())
        return Confirmation(there, (fix,), (), "the sine is taken again and again")

    monkeypatch.setattr("torchtraceap.codemap.place.fixer_of", {"made-up": Fixer("made-up", confirm)}.get)
    report = placed(recorded("made-up", ops={"sin": 1, "exp": 0}), tmp_path)
    assert lines(report) == [11]
    found = report.findings[0]
    assert found.message.startswith("the sine is taken again and again: ")
    assert found.fixes[0].title.startswith("Cache it (about 0.2") and found.fixes[0].title.endswith("(check results)")
    assert "the time is spent in block" in [related.message for related in found.related]


def test_without_a_workspace_nothing_is_placed(tmp_path: Path) -> None:
    report = place(recorded("made-up", ops={"sin": 1}, whole=True), None)
    assert [f.location for f in report.findings] == [None] and report.hotspots == ()


def test_hotspots_are_the_functions_by_their_time(tmp_path: Path) -> None:
    report = placed(recorded("made-up", ops={"sin": 1}), tmp_path)
    spots = {spot.qualname: spot for spot in report.hotspots}
    assert spots["block"].line == 4 and spots["block"].us_per_step == pytest.approx(300, rel=0.1)


@pytest.fixture(scope="module", params=["posekit", "resnet_birds", "unet_seg"])
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, dict]:
    """A project with known faults, placed in a workspace that holds it and a file of the same name beside it."""
    folder = PROJECTS / request.param
    if not folder.is_dir():
        pytest.skip("../shared/projects is not here")
    root = tmp_path_factory.mktemp(request.param)
    shutil.copytree(folder / "src", root / "src")
    for path in (root / "src").iterdir():
        (root / "old").mkdir(exist_ok=True)
        (root / "old" / path.name).write_text("def main():\n    pass\n")
    report = place(analyze(read_trace(folder / "trace.json.gz")), open_workspace(root))
    return report, json.loads((folder / "truth.json").read_text())


def test_known_faults_are_shown_on_their_lines(project: tuple[Report, dict]) -> None:
    report, truth = project
    known = set(fixers())
    missed = []
    for fault in truth["faults"]:
        slugs = {fault["slug"], *fault.get("also_slugs", ())} & known
        good = {(fault["path"], line) for line in range(fault["line"], fault["end_line"] + 1)}
        good |= {(path, int(line)) for path, _, line in (also.partition(":") for also in fault["also_lines"])}
        shown = [f for f in report.findings if f.slug in slugs and f.severity in SHOWN and f.location is not None]
        if slugs and not any((f.location.path, f.location.line) in good for f in shown if f.location):
            missed.append((fault["slug"], fault["line"], [(f.location and f.location.line) for f in shown]))
    assert not missed


def test_harmless_look_alikes_are_not_flagged(project: tuple[Report, dict]) -> None:
    report, truth = project
    flagged = [
        (f.slug, control["line"])
        for control in truth["controls"]
        for f in report.findings
        if f.severity in SHOWN and f.slug == control["slug"] and f.location is not None
        if (f.location.path, f.location.line) == (control["path"], control["line"])
    ]
    assert not flagged


def test_a_trace_without_stacks_still_finds_the_statements_that_the_source_gives_away() -> None:
    folder = PROJECTS / "unet_seg"
    if not folder.is_dir():
        pytest.skip("../shared/projects is not here")
    report = place(analyze(read_trace(folder / "trace_nostack.json.gz")), open_workspace(folder))
    churn = [f for f in report.findings if f.slug == "permute-contiguous-churn"]
    assert [(f.location.line, f.location.how) for f in churn if f.location] == [(46, How.ORDER)]


@pytest.mark.parametrize(("is_confirmed", "line"), [(False, 12), (True, 6)])
def test_a_search_that_knows_the_fault_beats_a_place_by_operator_that_nobody_confirms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_confirmed: bool, line: int
) -> None:
    b = TraceBuilder(devices=())
    for step in range(4):
        with b.step(step):
            b.leaf("aten::sin", us=100)
    trace = b.build()
    rows = trace.rows_named(("aten::sin",)).tolist()
    occurrences = tuple(Occurrence(row, Edit(removed_ops=np.array([row])), cost_rows=np.array([row])) for row in rows)
    found = Detected(pattern("made-up"), Candidate("work is repeated", "a cache", occurrences, ()))
    analysis = Analysis(build_timeline(trace), (found,))
    known = placed(analysis, tmp_path).findings[0].location
    assert known is not None and (known.line, known.how) == (6, How.OPERATOR)
    elsewhere = Confirmation(replace(known, line=12, end_line=12))
    fixer = Fixer(
        "made-up",
        lambda case: Confirmation(case.location) if is_confirmed else None,
        lambda finding, files, device: (elsewhere,),
    )
    monkeypatch.setattr("torchtraceap.codemap.place.fixer_of", {"made-up": fixer}.get)
    assert lines(placed(analysis, tmp_path)) == [line]


def test_tables_that_fail_cost_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> Tables:
        raise LookupError("no such row")

    analysis = recorded("made-up", ops={"sin": 1})
    monkeypatch.setattr("torchtraceap.codemap.place.tables", fail)
    for report in (placed(analysis, tmp_path), place(analysis, None)):
        assert report.findings and report.tables == Tables()
        assert "the tables failed and are left out: LookupError: no such row" in report.trace.problems


def test_a_family_that_only_the_source_tells_leaves_out_the_rules_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysis = recorded("made-up", ops={"sin": 1})
    windowed = [
        replace(d, pattern=replace(d.pattern, families=frozenset({Family.WINDOWED}))) for d in analysis.detected
    ]
    analysis = replace(analysis, detected=tuple(windowed))
    shown = {}
    for family in (None, Family.WINDOWED, Family.CNN):
        monkeypatch.setattr("torchtraceap.codemap.place.recognise", lambda workspace, files, family=family: family)
        report = placed(analysis, tmp_path)
        shown[report.trace.model_type] = lines(report)
    assert shown == {"": [6], "windowed": [6], "cnn": []}
