from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.shared import shared
from torchtraceap.analyzer.analysis import analyze
from torchtraceap.analyzer.detected import Analysis
from torchtraceap.analyzer.detector.shipped import Shipped
from torchtraceap.analyzer.diagnosis.dossier import Dossier
from torchtraceap.analyzer.diagnosis.figures import figures_of
from torchtraceap.analyzer.diagnosis.prompt import write_prompt
from torchtraceap.analyzer.findings import Report, Severity
from torchtraceap.analyzer.report.json import to_json
from torchtraceap.analyzer.trace.read import read_trace
from torchtraceap.codemap.dossiers import DossierMaker, make_dossiers
from torchtraceap.codemap.place import place
from torchtraceap.codemap.project import open_workspace

LEAVES = Path(__file__).resolve().parents[2] / "examples" / "leaves"
TRACES = ("S02_kineto_resnet50_w4_v100", "S06_hta_resnet50_v100_ns", "S12_ao_vit_bf16_compile_a100")
MANY = 100


def leaves() -> tuple[Analysis, Report]:
    return _of(LEAVES / "traces" / "train.pt.trace.json.gz", LEAVES)


@cache
def _of(trace: Path, source: Path | None) -> tuple[Analysis, Report]:
    analysis = analyze(read_trace(trace), detector=Shipped())
    return analysis, place(analysis, open_workspace(source) if source else None)


def dossiers() -> dict[str, Dossier]:
    """Of the example's findings, by slug."""
    return {dossier.slug: dossier for _, dossier in make_dossiers(*leaves(), open_workspace(LEAVES), MANY)}


def prompts(trace: Path, source: Path | None) -> list[str]:
    analysis = analyze(read_trace(trace), detector=Shipped())
    workspace = open_workspace(source) if source else None
    report = place(analysis, workspace)
    told = [dossier for _, dossier in make_dossiers(analysis, report, workspace, MANY, with_hints=True)]
    if analysis.windows is not None and len(analysis.windows.windows):
        told.append(DossierMaker(analysis, workspace).of_window(0))
    return [write_prompt(dossier, len, 3000, 1).prompt.user for dossier in told]


@pytest.mark.parametrize("trace", TRACES)
def test_the_same_trace_gives_the_same_prompts(trace: str) -> None:
    path = shared("traces", f"{trace}.json.gz")
    first = prompts(path, None)
    assert first and first == prompts(path, None)


def test_the_same_trace_and_source_give_the_same_prompts() -> None:
    trace = LEAVES / "traces" / "train.pt.trace.json.gz"
    assert prompts(trace, LEAVES) == prompts(trace, LEAVES)


def test_what_matters_most_comes_first_and_hints_are_left_out() -> None:
    analysis, report = leaves()
    made = make_dossiers(analysis, report, None, MANY)
    worth = [dossier.saving_us_per_step * dossier.probability for _, dossier in made]
    assert len(worth) > 2 and worth == sorted(worth, reverse=True)
    shown = {at for at, one in enumerate(report.findings) if one.severity is not Severity.HINT}
    assert {at for at, _ in made} <= shown
    assert make_dossiers(analysis, report, None, 2) == made[:2]
    assert len(make_dossiers(analysis, report, None, MANY, with_hints=True)) > len(made)


def test_a_dossier_is_of_its_finding() -> None:
    analysis, report = leaves()
    for at, dossier in make_dossiers(analysis, report, open_workspace(LEAVES), MANY):
        finding = report.findings[at]
        assert (dossier.slug, dossier.saving_pct) == (finding.slug, finding.saving_pct)
        assert dossier.choices[0].slug == finding.slug
        assert [fix.id for fix in dossier.fixes] == [fix.id for fix in finding.fixes[:5]]
        assert {one.id for one in dossier.evidence} <= {one.id for one in finding.evidence}
        assert " ms per step" not in dossier.summary


def test_no_id_stands_for_two_things() -> None:
    for dossier in dossiers().values():
        ids = [one.id for one in (*dossier.evidence, *dossier.tree, *dossier.layers)]
        assert len(ids) == len(set(ids))
        names = [(figure.id, figure.name) for figure in figures_of(dossier)]
        assert len(names) == len(set(names))


def test_source_is_the_whole_function_with_the_findings_line() -> None:
    source = dossiers()["unfused-attention"].source
    assert source is not None
    assert (source.path, source.qualname, source.first_line) == ("src/vit.py", "Attention.forward", 15)
    assert source.lines[0] == "def forward(self, x):" and source.lines[-1].strip() == "return self.proj(x)"
    assert "q @ k" in source.lines[source.marked_line - source.first_line]


def test_layers_have_sizes_and_shares_and_equal_blocks_are_one() -> None:
    rows = {row.name: row for row in dossiers()["unfused-attention"].layers}
    layer = rows["Layer x4"]
    assert layer.output_shape == (16, 144, 96)
    assert layer.share_pct is not None and 20 < layer.share_pct < 60


def test_a_windows_dossier_speaks_of_no_finding() -> None:
    analysis, _ = leaves()
    assert analysis.windows is not None
    dossier = DossierMaker(analysis, None).of_window(int(analysis.windows.bad.argmin()))
    assert (dossier.slug, dossier.fixes, dossier.source) == ("", (), None)
    assert dossier.bad is not None and dossier.bad < 0.5
    assert dossier.cost_us_per_step > 0


def test_windows_want_the_detector() -> None:
    analysis, _ = leaves()
    with pytest.raises(ValueError, match="without the detector"):
        DossierMaker(replace(analysis, windows=None), None).of_window(0)


def test_the_json_report_holds_no_dossier() -> None:
    assert not {"dossiers", "dossier"} & json.loads(to_json(leaves()[1])).keys()
