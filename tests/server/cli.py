"""Runs the installed command line as a user does: in a process of its own."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEAVES = ROOT / "examples" / "leaves"
TRACE = LEAVES / "traces" / "train.pt.trace.json.gz"


def torchtraceap(*arguments, cwd=None, env=None):
    """The finished process; its output is text."""
    code = "from torchtraceap.server.cli import main; main()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, encoding="utf-8", timeout=120, stdin=subprocess.DEVNULL
    )
