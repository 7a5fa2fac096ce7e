"""Runs the command line: in this process where its answer matters, in one of its own where the process does."""

import os
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


def start(*arguments, **environment):
    """A process of its own, as a shell starts it, with some variables set."""
    code = "from torchtraceap.server.cli import main; main()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env={**os.environ, **environment}
    )
