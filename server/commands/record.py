"""`torchtraceap record`: run a program as it is, and record it."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click

from ...codemap.record.options import DEFAULT_FOLDER, VARIABLE, RecordOptions, encode, name_problem, shortened
from ...codemap.record.reports import ENDED_EARLY, Report, collect, problem, sentences

PREFIX = "torchtraceap: "
_ANALYZE = """\
import sys
from torchtraceap.server.cli import main
sys.argv[:] = ["torchtraceap", "analyze", *sys.argv[1:]]
main()
"""
_BOOTSTRAP = """\
import os, sys
try:
    from torchtraceap.codemap.record.run import start
except ImportError as error:
    sys.stderr.write(f"torchtraceap: {sys.executable} cannot record: {error}\\n")
else:
    start(os.path.dirname(os.path.abspath(__file__)))
"""


@click.command(context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@click.option(
    "-o",
    "--output",
    default=DEFAULT_FOLDER,
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the trace; made if it is not there.",
)
@click.option("--name", default="", help="What the trace file is called; by default the script's name and the time.")
@click.option(
    "--iterations", default=100, show_default=True, type=click.IntRange(0), help="Light steps, without stacks."
)
@click.option(
    "--full", default=4, show_default=True, type=click.IntRange(1, 50), help="Steps with stacks, shapes and memory."
)
@click.option(
    "--warm-up", default=5, show_default=True, type=click.IntRange(0), help="Steps at least to let pass first."
)
@click.option("--attention", is_flag=True, help="Also measure what each attention head looks at and is worth.")
@click.option("--counters", is_flag=True, help="Also read the GPU's counters.")
@click.option(
    "--ncu", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="CSV of Nsight Compute to join."
)
@click.option("--analyze", "then_analyze", is_flag=True, help="Show the findings at the end.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def record(
    output: Path,
    name: str,
    iterations: int,
    full: int,
    warm_up: int,
    attention: bool,
    counters: bool,
    ncu: Path | None,
    then_analyze: bool,
    command: tuple[str, ...],
) -> None:
    """Run a PyTorch program as it is and record a trace of it, with the exact line of everything.

    COMMAND is what would be typed without this: `python train.py --epochs 3`, `-m package.train`, `torchrun ...`.
    Put `--` before it. The program's output, exit code and files are its own.

    The exit code is the program's, too: 128 and the signal's number if one ended it. 2 if it could not be started.
    """
    if name and (reason := name_problem(name)):
        raise click.UsageError(f"--name: {reason}")
    words = _whole(command)
    _check_folder(output)
    with tempfile.TemporaryDirectory(prefix="torchtraceap-") as place:
        bootstrap, reports = Path(place, "bootstrap"), Path(place, "reports")
        bootstrap.mkdir()
        reports.mkdir()
        (bootstrap / "sitecustomize.py").write_text(_BOOTSTRAP, "utf-8")
        options = RecordOptions(
            folder=str(output.absolute()),
            name=name or f"{shortened(_stem(words))}-{time.strftime('%Y%m%d-%H%M%S')}",
            iterations=iterations,
            full=full,
            warm_up=warm_up,
            attention=attention,
            counters=counters,
            ncu=str(ncu.absolute()) if ncu is not None else "",
            command=tuple(words),
            reports=str(reports),
        )
        code = _run(words, _environment(bootstrap, options))
        traces = _tell(collect(reports))
    if then_analyze and traces:
        # Its exit code means findings; this command's is the program's.
        subprocess.run([sys.executable, "-c", _ANALYZE, *traces], check=False)
    sys.exit(code)


def _whole(command: Sequence[str]) -> list[str]:
    """The command, with a Python before a bare script or `-m`."""
    words = list(command)
    if words[0] == "-m" or words[0].endswith((".py", ".pyw")):
        words.insert(0, sys.executable)
    if shutil.which(words[0]) is None:
        raise click.UsageError(f"{words[0]}: no such program")
    return words


def _stem(words: Sequence[str]) -> str:
    """What to call a recording of this command: its script or module, else its program."""
    for before, word in itertools.pairwise(words):
        if word.endswith(".py"):
            return Path(word).stem
        if before == "-m":
            return Path(word.rpartition(".")[2]).name or "python"
    return Path(words[0]).stem


def _check_folder(folder: Path) -> None:
    """Make the folder and see that files can be made in it, before a long run finds out."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise click.UsageError(f"{folder}: no trace can be written there: {error.strerror or error}") from error


def _environment(bootstrap: Path, options: RecordOptions) -> dict[str, str]:
    path = os.environ.get("PYTHONPATH", "")
    return {
        **os.environ,
        "PYTHONPATH": f"{bootstrap}{os.pathsep}{path}" if path else str(bootstrap),
        VARIABLE: encode(options),
    }


def _run(words: Sequence[str], environment: dict[str, str]) -> int:
    """Run the program to its end; its exit code, as a shell would give it.

    Ctrl-C reaches the program from the terminal itself; a request to end is passed on.
    """
    # A program started from a script in the background would inherit a signal that is ignored, so only we ignore it.
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        process = subprocess.Popen(words, env=environment)
    except OSError as error:
        raise click.UsageError(f"{words[0]}: {error.strerror or error}") from error
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    passed_on = signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
    try:
        code = process.wait()
    finally:
        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGTERM, passed_on)
    return 128 - code if code < 0 else code


def _tell(reports: Sequence[Report]) -> list[str]:
    """Say on stderr what was recorded, and answer the traces' paths."""
    written = [report for report in reports if report.trace]
    for report in written:
        for sentence in sentences(report, _shown(report.trace)):
            _say(sentence)
    if written:
        _say(f"to see the findings: torchtraceap analyze {' '.join(_shown(report.trace) for report in written)}")
    else:
        _say(problem(reports))
        for note in dict.fromkeys(note for report in reports for note in report.notes):
            if not note.startswith(ENDED_EARLY):  # said already
                _say(note)
    return [report.trace for report in written]


def _shown(path: str) -> str:
    """Relative to here where that is shorter."""
    try:
        here = Path.cwd()
    except OSError:  # the program has deleted it
        return path
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _say(sentence: str) -> None:
    click.echo(PREFIX + sentence, err=True)
