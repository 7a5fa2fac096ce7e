"""Publishing what a bench measured: a versioned JSON file and the same figures as a table."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

SCHEMA = 1
BENCH = Path(__file__).parent
MEMORY_INFO = Path("/proc/meminfo")
CPU_INFO = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure must reach. Give one of the two bounds."""

    at_most: float | None = None
    at_least: float | None = None

    def met_by(self, value: float) -> bool:
        """Whether `value` is within the bounds; NaN never is."""
        above = self.at_least is None or value >= self.at_least
        below = self.at_most is None or value <= self.at_most
        return above and below

    def __str__(self) -> str:
        if self.at_most is not None:
            return f"<= {self.at_most:g}"
        return f">= {self.at_least:g}" if self.at_least is not None else ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number: `name` (with its unit, such as `read_cpu_s`) of `subject` (a trace, a step, the server)."""

    subject: str
    name: str
    value: float


def publish(
    bench: str,
    figures: Sequence[Figure],
    *,
    targets: dict[str, Target] | None = None,
    packages: Iterable[str] = ("numpy", "msgspec", "isal"),
    notes: Sequence[str] = (),
    details: Mapping[str, Mapping[str, float]] | None = None,
) -> bool:
    """Write `bench/<bench>/results.json` and print the figures as a table; True if every target was met.

    `targets` is by figure name, or by "subject name" for one subject's; `packages` are those whose versions matter to
    the figures. `notes` are sentences a reader needs, such as what could not be measured. `details` are rows of
    further figures that only go into the file.
    """
    targets = targets or {}
    results: dict[str, dict[str, float]] = {}
    for figure in figures:
        results.setdefault(figure.subject, {})[figure.name] = figure.value
    document = {
        "schema": SCHEMA,
        "bench": bench,
        "commit": commit(),
        "machine": machine(),
        "versions": versions(packages),
        "targets": {name: str(target) for name, target in targets.items()},
        "notes": list(notes),
        "results": results,
    }
    if details:
        document["details"] = details
    path = BENCH / bench / "results.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    show(bench, results, targets, notes)
    wanted = [(target_of(targets, figure.subject, figure.name), figure.value) for figure in figures]
    return all(target.met_by(value) for target, value in wanted if target is not None)


def target_of(targets: Mapping[str, Target], subject: str, name: str) -> Target | None:
    """The target of one figure: the subject's own, else that of all figures of the name."""
    return targets.get(f"{subject} {name}", targets.get(name))


def show(
    bench: str, results: dict[str, dict[str, float]], targets: dict[str, Target], notes: Sequence[str] = ()
) -> None:
    """Print a table: a row per subject, a column per figure, red where a target is missed."""
    names = list(dict.fromkeys(name for row in results.values() for name in row))
    table = Table(title=f"bench/{bench}", caption="\n".join(notes) or None)
    table.add_column("")
    for name in names:
        target = targets.get(name)
        table.add_column(f"{name}\n{target}" if target else name, justify="right")
    for subject, row in results.items():
        table.add_row(subject, *(_cell(row.get(name), target_of(targets, subject, name)) for name in names))
    Console(width=None if os.isatty(1) else 160).print(table)


def _cell(value: float | None, target: Target | None) -> Text:
    if value is None:
        return Text("")
    style = "" if target is None else "green" if target.met_by(value) else "bold red"
    return Text(f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}", style=style)


def commit() -> str:
    """The commit the figures were measured on, with `+changes` if the working tree differs; "" outside git."""
    head = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":!bench/*/results.json")
    return f"{head}+changes" if head and changed else head


def machine() -> dict[str, str | int]:
    """What the figures depend on: processor, cores, memory and operating system."""
    return {
        "processor": _first_value(CPU_INFO, "model name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count() or 0,
        "memory": _first_value(MEMORY_INFO, "MemTotal"),
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of Python and of those `packages` that are installed."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=BENCH, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def _first_value(path: Path, key: str) -> str:
    if not path.is_file():
        return ""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")
