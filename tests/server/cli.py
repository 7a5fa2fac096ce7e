"""Runs the command line: in this process where its answer matters, in one of its own where the process does."""

import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from torchtraceap.server.cli import cli

ROOT = Path(__file__).parents[2]
LEAVES = ROOT / "examples" / "leaves"
TRACE = LEAVES / "traces" / "train.pt.trace.json.gz"


def torchtraceap(*arguments):
    """The result: `exit_code`, `stdout`, `stderr`. What is no error message but an exception is raised."""
    return CliRunner().invoke(cli, [*map(str, arguments)], prog_name="torchtraceap", catch_exceptions=False)


def start(*arguments):
    """A process of its own, as a shell starts it."""
    code = "from torchtraceap.server.cli import main; main()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
