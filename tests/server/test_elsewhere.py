"""A trace in one workspace folder whose frames name files of another."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from torchtraceap.server.jobs import Pipeline
from torchtraceap.server.messages import Analyze, Analyzed

LEAVES = Path(__file__).parents[2] / "examples" / "leaves"


def analyzed(root: Path, others: dict[str, dict[str, str]], report: Path) -> Analyzed:
    trace = str(LEAVES / "traces" / "train.pt.trace.json.gz")
    job = Analyze(1, trace, str(root), {}, 1.0, "auto", str(report), others)
    return Pipeline("analysis").analyze(job, lambda fraction, stage: None)


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    runs, code = tmp_path / "runs", tmp_path / "code"
    runs.mkdir()
    (runs / "notes.py").write_text("import torch\n")
    shutil.copytree(LEAVES / "src", code / "src")
    return runs, code


def test_what_another_folder_ran_is_found_there(roots: tuple[Path, Path], tmp_path: Path) -> None:
    runs, code = roots
    answer = analyzed(runs, {str(code): {}}, tmp_path / "report.json")
    found = answer.elsewhere[str(code)]
    slugs = {finding.slug: finding.location for finding in found.report.findings}
    assert slugs["unfused-attention"] and slugs["unfused-attention"].path == "src/vit.py"
    assert all(finding.location is not None for finding in found.report.findings)
    assert len(found.anchors) == len(found.report.findings) and "src/vit.py" in found.sources
    assert not {finding.slug for finding in answer.report.findings} & set(slugs)


def test_a_folder_that_has_nothing_to_do_with_it_is_left_out(roots: tuple[Path, Path], tmp_path: Path) -> None:
    runs, code = roots
    answer = analyzed(code, {str(runs): {}}, tmp_path / "report.json")
    assert answer.elsewhere == {} and any(finding.location for finding in answer.report.findings)
