"""The benches' command lines: help, a folder of traces, and what happens without one."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from bench import folder

ROOT = Path(__file__).parents[2]
SUBJECTS = ROOT / "bench" / "codemap" / "scripts"
"""Programs that are measured, not benches."""
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")
    for path in (ROOT / "bench").rglob("*.py")
    if "def main(" in path.read_text("utf-8") and SUBJECTS not in path.parents
)
READ_TRACES = ("detector.cost", "parse", "replay", "rules", "truth")


def main_of(bench: str):
    """A bench's entry point."""
    name = f"bench.{bench}"
    return import_module(f"{name}.__main__" if (ROOT / "bench" / bench).is_dir() else name).main


def test_the_benches_are_found() -> None:
    assert {f"bench.{name}" for name in (*READ_TRACES, "server")} <= set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_help_is_answered_and_nothing_started(module: str) -> None:
    command = [sys.executable, "-m", module, "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: python -m {module} ")


@pytest.mark.parametrize("bench", READ_TRACES)
def test_without_traces_it_is_skipped_saying_so(bench: str, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(folder, "DEFAULT_FOLDER", tmp_path / "traces")
    assert main_of(bench)([]) == 0
    assert capsys.readouterr().out.startswith(f"skipped bench.{bench}: no folder {tmp_path}")


@pytest.mark.parametrize("bench", READ_TRACES)
def test_a_folder_named_that_is_not_there_is_an_error(bench: str, tmp_path, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main_of(bench)([str(tmp_path / "absent")])
    assert ended.value.code == 2
    assert f"no folder {tmp_path / 'absent'}" in capsys.readouterr().err


@pytest.mark.parametrize(("bench", "lacks"), [("parse", "S01_"), ("replay", "S01_"), ("truth", "truth.json")])
def test_a_folder_named_is_the_one_read(bench: str, lacks: str, tmp_path, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main_of(bench)([str(tmp_path)])
    assert lacks in f"{ended.value.code} {capsys.readouterr().err}"
