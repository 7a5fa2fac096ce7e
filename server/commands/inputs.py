"""From the paths on the command line to one report: what `analyze` and `fix` share."""

from __future__ import annotations

import glob
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
from rich.console import Console

from ...analyzer.analysis import analyze, analyze_job
from ...analyzer.antipatterns import MODEL_TYPES
from ...analyzer.detected import AUTO, Analysis, Options
from ...analyzer.detector.shipped import Shipped
from ...analyzer.findings import Report
from ...analyzer.patterns.registry import all_patterns
from ...analyzer.trace.counters import NO_COUNTERS, CounterTable
from ...analyzer.trace.limits import TraceError
from ...analyzer.trace.model import Trace
from ...analyzer.trace.read import read_trace
from ...analyzer.trace.recording import is_trace_name
from ...codemap.cache import cache_path
from ...codemap.drift_history import open_history
from ...codemap.place import place
from ...codemap.project import ProjectWorkspace, open_workspace
from ...codemap.survey import Survey
from ..merge import merge_reports
from ..ranks import group_ranks, is_only_called_a_job
from .progress import Reporter, reporting


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found in the traces that could be read, and a sentence for each that could not."""

    report: Report | None
    """None when no trace could be read."""
    workspace: ProjectWorkspace
    errors: tuple[str, ...]


def examine(
    traces: Sequence[str],
    source: Path,
    options: Options,
    stderr: Console,
    *,
    with_detector: bool = True,
    counters: CounterTable = NO_COUNTERS,
) -> Outcome:
    """Read, analyze and place every trace named, and merge what they show; the newest trace's figures lead.

    `counters`, if there are any, take the place of those that a trace has.

    The ranks of one job are analyzed together. Of those, one that cannot be read is no error, but a problem of the job.
    """
    root = source.resolve()
    survey = Survey(root, cache=cache_path(root))
    workspace = open_workspace(root, survey=survey)
    reports: list[Report] = []
    errors: list[str] = []
    detector = Shipped() if with_detector else None
    with reporting(stderr) as reporter:
        waiting = group_ranks(newest_first(expand(traces)))
        while waiting:
            paths = waiting.pop(0)
            try:
                analysis = _analyze(paths, options, detector, reporter, counters)
            except (TraceError, OSError) as error:
                errors.append(sentence(paths[0], error))
                continue
            if is_only_called_a_job(analysis):
                waiting[:0] = [(path,) for path in paths]
                continue
            reporter.stage(f"finding the lines of {paths[0].name}")
            history = open_history(source, paths)
            reports.append(place(analysis, workspace, options, history))
            history.keep()
    survey.save()
    return Outcome(_merged(reports) if reports else None, workspace, tuple(errors))


def expand(paths: Sequence[str]) -> tuple[Path, ...]:
    """The trace files that `paths` name: files, folders (every trace below them) and glob patterns.

    Raises click.UsageError for a path that names nothing.
    """
    found: dict[Path, None] = {}
    for path in paths:
        # Not Path.glob: it takes no absolute patterns.
        named = [path] if Path(path).exists() else sorted(glob.glob(path, recursive=True))  # noqa: PTH207
        matches = [Path(match) for match in named]
        files = [file for match in matches for file in (_traces_below(match) if match.is_dir() else [match])]
        if not files:
            raise click.UsageError(f"{path}: no trace there" if matches else f"{path}: no such file or folder")
        found.update(dict.fromkeys(files))
    return tuple(found)


def newest_first(paths: Sequence[Path]) -> tuple[Path, ...]:
    """The paths by time of last change, the newest first."""
    return tuple(sorted(paths, key=lambda path: path.stat().st_mtime_ns if path.exists() else 0, reverse=True))


def known_names(_context: click.Context, parameter: click.Parameter, value: Sequence[str]) -> frozenset[str]:
    """Check the slugs and codes of `--select` and `--ignore`; each may hold several, parted by commas."""
    names = frozenset(name.strip() for item in value for name in item.split(",") if name.strip())
    known = {name for pattern in all_patterns() for name in (pattern.slug, pattern.code)}
    if unknown := sorted(names - known):
        hint = "; `torchtraceap patterns` lists them"
        raise click.BadParameter(f"no such pattern: {', '.join(unknown)}{hint}", param=parameter)
    return names


def known_number(_context: click.Context, parameter: click.Parameter, value: float) -> float:
    """Refuse `nan`, which no range check catches."""
    if math.isnan(value):
        raise click.BadParameter("it is not a number", param=parameter)
    return value


def with_inputs(command: Callable[..., None]) -> Callable[..., None]:
    """Add the arguments and options by which `analyze` and `fix` take their input."""
    decorators = (
        click.argument("traces", nargs=-1, required=True, metavar="PATH..."),
        click.option(
            "--source",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            default=Path(),
            show_default="the current folder",
            help="The folder of the model's source. Nothing outside it is opened.",
        ),
        click.option(
            "--min-saving",
            type=click.FloatRange(0.0, 100.0),
            callback=known_number,
            default=Options().min_saving_pct,
            show_default=True,
            metavar="PCT",
            help="Predicted saving, in per cent of the step, below which a finding is only a hint.",
        ),
        click.option(
            "--model-type",
            type=click.Choice(MODEL_TYPES),
            default=AUTO,
            show_default=True,
            help="The family of the model; some rules hold for one family only.",
        ),
        click.option(
            "--select", multiple=True, callback=known_names, metavar="NAMES", help="Only these slugs or codes."
        ),
        click.option(
            "--ignore", multiple=True, callback=known_names, metavar="NAMES", help="Not these slugs or codes."
        ),
        click.option(
            "--detector/--no-detector",
            "with_detector",
            default=True,
            show_default=True,
            help="Whether the learned detector has a say in how probable findings are, and finds what no rule does.",
        ),
    )
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def _analyze(
    paths: Sequence[Path], options: Options, detector: Shipped | None, reporter: Reporter, counters: CounterTable
) -> Analysis:
    """Analyze one trace, or the ranks of one job. Raises TraceError or OSError if none of them can be read."""
    if len(paths) == 1:
        trace = _with_counters(read_one(paths[0], reporter), counters)
        reporter.stage(f"analyzing {paths[0].name}")
        return analyze(trace, options, detector)
    ranks = (one if isinstance(one, str) else _with_counters(one, counters) for one in _read_each(paths, reporter))
    return analyze_job(ranks, options, detector)


def _with_counters(trace: Trace, counters: CounterTable) -> Trace:
    return replace(trace, counters=counters) if len(counters) else trace


def _read_each(paths: Sequence[Path], reporter: Reporter) -> Iterator[Trace | str]:
    """Each trace in turn, or why it cannot be read."""
    for path in paths:
        try:
            yield read_one(path, reporter)
        except (TraceError, OSError) as error:
            yield sentence(path, error)


def read_one(path: Path, reporter: Reporter) -> Trace:
    """One trace. Raises TraceError or OSError if it cannot be read or holds no event."""
    reporter.stage(f"reading {path.name}")
    trace = read_trace(path, on_progress=reporter.fraction)
    if not len(trace):
        raise TraceError("; ".join([f"{path}: no event in it", *(problem.message for problem in trace.problems)]))
    return trace


def _merged(reports: Sequence[Report]) -> Report:
    """One report that names every trace it came from."""
    report = merge_reports(reports)
    paths = tuple(path for each in reports for path in each.trace.paths)
    return replace(report, trace=replace(report.trace, paths=paths))


def _traces_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if is_trace_name(path.name) and path.is_file())


def sentence(path: Path, error: Exception) -> str:
    """What is wrong with a trace, its name in it."""
    text = str(error)
    return text if str(path) in text else f"{path}: {text}"
