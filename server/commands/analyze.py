"""`torchtraceap analyze`: the findings of traces, for people and for CI."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

import click
from rich.console import Console

from ...analyzer.detected import Options
from ...analyzer.findings import Report, Severity
from ...analyzer.patterns.registry import all_patterns
from ...analyzer.report.json import to_json
from ...analyzer.report.printable import printable
from ...analyzer.report.sarif import to_sarif
from ...analyzer.report.text import to_text
from ...analyzer.trace.counters import NO_COUNTERS
from ...analyzer.trace.limits import TraceError
from ...analyzer.trace.ncu import read_ncu
from ...codemap.in_cells import in_cells, written_line
from ...codemap.project import ProjectWorkspace
from ..pages import why
from .inputs import examine, with_inputs

CLEAN, FOUND, FAILED = 0, 1, 2
NEVER = "never"


@click.command()
@with_inputs
@click.option("--format", "form", type=click.Choice(["text", "json", "sarif"]), default="text", show_default=True)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write there instead of to stdout.")
@click.option(
    "--fail-on",
    type=click.Choice([*(severity.value for severity in Severity), NEVER]),
    default=Severity.WARNING.value,
    show_default=True,
    help="Exit with 1 if there is a finding of this severity or a worse one.",
)
@click.option(
    "--ncu",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="CSV of Nsight Compute (`ncu --csv`) with counters of the same kernels.",
)
@click.option("--feature-maps", is_flag=True, help="List every layer's feature map in the JSON report.")
@click.option("--windows", is_flag=True, help="List what the detector says of each window in the JSON report.")
def analyze(
    traces: tuple[str, ...],
    source: Path,
    min_saving: float,
    model_type: str,
    select: frozenset[str],
    ignore: frozenset[str],
    with_detector: bool,
    form: str,
    output: Path | None,
    fail_on: str,
    feature_maps: bool,
    windows: bool,
    ncu: Path | None,
) -> None:
    """Find the performance anti-patterns in profiler traces, on the source lines that cause them.

    PATH is a trace, a folder of traces, or a glob such as 'runs/rank*.json.gz'. Several traces make one report.

    \b
    Exit code: 0 no finding at or above --fail-on, 1 findings, 2 something could not be read.
    """
    stderr = Console(stderr=True)
    try:
        counters = read_ncu(ncu) if ncu is not None else NO_COUNTERS
    except TraceError as error:
        raise click.BadParameter(str(error), param_hint="--ncu") from error
    options = Options(min_saving, select, ignore, model_type, feature_maps, windows)
    outcome = examine(traces, source, options, stderr, with_detector=with_detector, counters=counters)
    for error in outcome.errors:
        stderr.print(f"error: {printable(error)}", style="red", markup=False, highlight=False, soft_wrap=True)
    if outcome.report is not None:
        _write(in_cells(outcome.report, outcome.workspace.file), outcome.workspace, form, output)
    sys.exit(_exit_code(outcome.report, bool(outcome.errors), fail_on))


def _write(report: Report, workspace: ProjectWorkspace, form: str, output: Path | None) -> None:
    if form == "text":
        _write_text(report, workspace, output)
        return
    text = to_json(report) if form == "json" else to_sarif(report, all_patterns(), version("torchtraceap"))
    if output is None:
        click.echo(text.encode(), nl=False)  # JSON is UTF-8, whatever the terminal's encoding
    else:
        output.write_text(text, "utf-8")


def _write_text(report: Report, workspace: ProjectWorkspace, output: Path | None) -> None:
    text = to_text(report, lambda place: written_line(place, workspace.file), why)
    if output is None:
        Console().print(text, end="", soft_wrap=True)
    else:
        output.write_text(text.plain, "utf-8")


def _exit_code(report: Report | None, failed: bool, fail_on: str) -> int:
    """2 whenever a trace could not be read: a run that saw less than it was asked to must not pass for clean."""
    if report is None or failed:
        return FAILED
    if fail_on == NEVER:
        return CLEAN
    severities = list(Severity)
    counted = severities[: severities.index(Severity(fail_on)) + 1]
    return FOUND if any(finding.severity in counted for finding in report.findings) else CLEAN
