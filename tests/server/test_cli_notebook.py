"""The command line on a program that ran in a notebook: findings by cell, fixes in the notebook's JSON."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

import pytest

from torchtraceap.codemap.cells import murmur2
from torchtraceap.codemap.notebook import read_notebook

from ..codemap.notebooks import notebook_json
from .cli import LEAVES, TRACE, torchtraceap

FILES = ("data", "cnn", "vit", "train")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The example as it would be in a notebook: a cell for each file, and the trace that says so."""
    texts = {name: (LEAVES / f"src/{name}.py").read_text("utf-8").rstrip("\n") for name in FILES}
    notebook = notebook_json("# Leaves", *texts.values(), markdown={0})
    (tmp_path / "leaves.ipynb").write_bytes(notebook)
    trace = gzip.decompress(Path(TRACE).read_bytes()).decode()
    for name, text in texts.items():
        cell = f'"/tmp/ipykernel_4711/{murmur2(text.encode(), 0xC70F6907)}.py('
        trace = trace.replace(f'"{name}.py(', cell)
    (tmp_path / "run.pt.trace.json").write_text(trace)
    return tmp_path


def test_findings_are_told_by_cell(project: Path) -> None:
    result = torchtraceap("analyze", project / "run.pt.trace.json", "--source", project, "--fail-on", "never")
    assert result.exit_code == 0, result.stderr
    lines = (LEAVES / "src/vit.py").read_text("utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, start=1) if "softmax" in text)
    head = next(text for text in result.stdout.splitlines() if "[unfused-attention]" in text)
    assert head.startswith("leaves.ipynb, cell 4, line ")
    assert abs(int(head.split("line ")[1].split(":")[0]) - line) <= 3
    report = torchtraceap("analyze", project / "run.pt.trace.json", "--source", project, "--format", "json")
    (found,) = [each for each in json.loads(report.stdout)["findings"] if each["slug"] == "unfused-attention"]
    assert (found["location"]["path"], found["location"]["cell"]) == ("leaves.ipynb", 4)
    assert all(edit["cell"] == 4 for fix in found["fixes"] for edit in fix["edits"])


def test_sarif_names_the_cell_and_no_line_of_the_json(project: Path) -> None:
    report = torchtraceap("analyze", project / "run.pt.trace.json", "--source", project, "--format", "sarif")
    results = json.loads(report.stdout)["runs"][0]["results"]
    (location,) = next(each for each in results if each["properties"]["slug"] == "unfused-attention")["locations"]
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "cell 4"
    assert "region" not in location["physicalLocation"]


def test_a_fix_changes_the_cell_and_nothing_else(project: Path) -> None:
    file = project / "leaves.ipynb"
    before = file.read_bytes()
    arguments = ("fix", project / "run.pt.trace.json", "--source", project, "--select", "unfused-attention")
    shown = torchtraceap(*arguments, "--diff")
    assert file.read_bytes() == before
    done = torchtraceap(*arguments)
    assert done.exit_code == 0, done.stderr
    assert "fixed leaves.ipynb, cell 4, line " in done.stderr
    after = file.read_bytes()
    changed = [
        one.number
        for one, other in zip(read_notebook(before).cells, read_notebook(after).cells, strict=True)
        if one.source != other.source
    ]
    assert changed == [4] and b"scaled_dot_product_attention" in after
    file.write_bytes(before)
    (project / "fix.diff").write_text(shown.stdout, "utf-8")
    subprocess.run(["git", "apply", "fix.diff"], cwd=project, check=True)
    assert file.read_bytes() == after


def test_a_model_s_parts_are_told_by_cell(project: Path) -> None:
    result = torchtraceap("model", "--source", project)
    assert result.exit_code == 0, result.stderr
    assert "leaves.ipynb, cell 3, line " in result.stdout and "leaves.ipynb:" not in result.stdout
