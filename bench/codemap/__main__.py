"""How much of a recording is placed on the line that ran: `python -m bench.codemap [PROGRAM ...]`.

Small programs by differing hands (`scripts/`) are run under the profiler with a clock of their lines beside it; the
recording is then stripped of stacks, ranges and shapes in turn, and every operator's place is compared with the line
that really ran it, weighted by its own time. Every program weighs the same in the totals. The exit status is 1 if a
target is missed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ..results import Figure, Target, publish
from .job import Job, Outcome, run
from .programs import Program, programs
from .samples import sample_outcomes
from .score import Scored, Shares
from .strip import Mode

TARGETS = {
    "stack line_pct": Target(at_least=99.0),
    "module line_pct": Target(at_least=95.0),
    "shape line_pct": Target(at_least=80.0),
    "shape function_pct": Target(at_least=95.0),
}
LONGEST_S = 150


@dataclass(frozen=True, slots=True)
class _Asked:
    programs: list[Program]
    modes: tuple[Mode, ...]
    traces: Path | None
    misses: int
    jobs: int

    @property
    def is_whole(self) -> bool:
        """Whether it is everything, so that the figures may be published."""
        return len(self.modes) == len(Mode) and len(self.programs) == len(programs([]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, strip, place, compare; print and publish. 1 if a target is missed or a program fails."""
    asked = _asked(arguments)
    notes = [f"{p.name} is left out: {p.lacks()} is not installed" for p in asked.programs if p.lacks()]
    chosen = [program for program in asked.programs if not program.lacks()]
    with tempfile.TemporaryDirectory() as folder:
        outcomes = list(_outcomes(chosen, asked, asked.traces or Path(folder)))
    for outcome in outcomes:
        if outcome.error:
            print(f"{outcome.name} failed: {outcome.error}")
        elif asked.misses and not outcome.is_held_out:
            _print_misses(outcome, asked.misses)
    samples = list(sample_outcomes()) if asked.is_whole else []
    _print_rows([*outcomes, *samples], asked.modes)
    figures = list(_totals(outcomes, asked.modes))
    if not asked.is_whole:
        _print_totals(figures)
        return 0
    packages, details = ("numpy", "torch"), _rows([*outcomes, *samples])
    met = publish("codemap", figures, targets=TARGETS, packages=packages, notes=notes, details=details)
    return 0 if met and not any(outcome.error for outcome in outcomes) else 1


def _asked(arguments: Sequence[str] | None) -> _Asked:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench.codemap", description=__doc__, formatter_class=raw)
    parser.add_argument("program", nargs="*", help="names of programs (default: all, and the results are published)")
    parser.add_argument("--mode", action="append", choices=[mode.value for mode in Mode], help="only these modes")
    parser.add_argument("--traces", type=Path, help="keep the recordings here, and use those that are still good")
    parser.add_argument("--misses", type=int, default=0, metavar="N", help="show the N worst misses of each recording")
    parser.add_argument("--jobs", type=int, default=2, help="how many programs at a time (default: 2)")
    found = parser.parse_args(arguments)
    modes = tuple(mode for mode in Mode if not found.mode or mode.value in found.mode)
    traces = found.traces.resolve() if found.traces else None
    return _Asked(programs(found.program), modes, traces, found.misses, max(found.jobs, 1))


def _outcomes(chosen: Iterable[Program], asked: _Asked, folder: Path) -> Iterator[Outcome]:
    """Each program in a process of its own; torch is imported once, by the process that they are forked from."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", f"{__package__}.job"])
    jobs = [Job(program, folder / program.name, asked.modes) for program in chosen]
    for job in jobs:
        _prepare(job, is_kept=asked.traces is not None)
    with context.Pool(asked.jobs, maxtasksperchild=1) as pool:
        running = [(job, pool.apply_async(run, (job,))) for job in jobs]
        for job, result in running:
            try:
                yield result.get(LONGEST_S)
            except multiprocessing.TimeoutError:
                yield Outcome(job.program.name, {}, f"took longer than {LONGEST_S} s", job.program.is_held_out)


def _prepare(job: Job, *, is_kept: bool) -> None:
    """Drop what a former run left, unless it is wanted and the program is the same still."""
    if job.folder.exists() and not (is_kept and job.is_recorded()):
        shutil.rmtree(job.folder)


def _totals(outcomes: Sequence[Outcome], modes: Iterable[Mode]) -> Iterator[Figure]:
    """Means over the programs, of those to develop on and of those held out too."""
    for mode in modes:
        every = [(o, shares) for o in outcomes if (shares := _shares_of(o, mode)) is not None]
        for field in fields(Shares):
            if every:
                yield Figure(mode.value, field.name, statistics.fmean(getattr(s, field.name) for _, s in every))
        for name in ("line_pct", "function_pct"):
            held_out = [getattr(shares, name) for outcome, shares in every if outcome.is_held_out]
            if held_out:
                yield Figure(mode.value, f"held_out_{name}", statistics.fmean(held_out))
        if every:
            yield Figure(mode.value, "programs", len(every))
            yield Figure(mode.value, "placing_cpu_s", sum(o.scored[mode].cpu_s for o, _ in every))


def _shares_of(outcome: Outcome, mode: Mode) -> Shares | None:
    scored = outcome.scored.get(mode)
    return scored.shares if scored is not None else None


def _rows(outcomes: Iterable[Outcome]) -> dict[str, dict[str, float]]:
    """Per program, what its row of the table says."""
    return {
        outcome.name: {
            f"{mode.value}_{name}": round(getattr(scored.shares, name), 2)
            for mode, scored in outcome.scored.items()
            if scored.shares is not None
            for name in ("line_pct", "function_pct")
        }
        for outcome in outcomes
    }


def _print_rows(outcomes: Sequence[Outcome], modes: Sequence[Mode]) -> None:
    table = Table("", *(f"{mode.value}\nline  func" for mode in modes), title="right line and right function, per cent")
    for outcome in outcomes:
        cells = [_cell(outcome.scored.get(mode)) for mode in modes]
        table.add_row(f"{outcome.name}{' *' if outcome.is_held_out else ''}", *cells)
    table.caption = "* held out"
    Console(width=120 if not sys.stdout.isatty() else None).print(table)


def _cell(scored: Scored | None) -> str:
    shares = scored.shares if scored is not None else None
    return f"{shares.line_pct:5.1f} {shares.function_pct:5.1f}" if shares is not None else "-"


def _print_totals(figures: Iterable[Figure]) -> None:
    for figure in figures:
        print(f"{figure.subject} {figure.name}: {figure.value:.2f}")


def _print_misses(outcome: Outcome, most: int) -> None:
    for mode, scored in outcome.scored.items():
        for miss in scored.misses[:most]:
            print(f"{outcome.name}/{mode.value} {miss.share_pct:5.2f} % x{miss.count}  {miss.truth} -> {miss.found}")
            print(f"      {', '.join(miss.names[:6])}")


if __name__ == "__main__":
    raise SystemExit(main())
