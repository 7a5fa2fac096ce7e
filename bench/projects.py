"""The sample projects' known faults and look-alikes, wanted and found: `python -m bench.projects [FOLDER]`.

FOLDER holds projects, each with `src/`, `trace.json.gz` and `truth.json` (default: ../shared/projects). A fault must be
shown on one of its lines, with a fix; a control must not be shown. The predicted saving stands beside the measured
one: within a factor of two of it, or of the other measurement where truth.json has two. The exit status is 1 if a line
does not hold.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from torchtraceap.analyzer.analysis import analyze
from torchtraceap.analyzer.antipatterns import Looking
from torchtraceap.analyzer.detector.shipped import Shipped
from torchtraceap.analyzer.findings import Finding, Severity
from torchtraceap.analyzer.trace.read import read_trace
from torchtraceap.codemap.place import place
from torchtraceap.codemap.project import open_workspace

from .folder import DEFAULT_FOLDER, traces_folder

FACTOR = 2.0
MEASUREMENTS = ("saving_pct_measured", "saving_pct_pinned", "saving_pct_paired")


@dataclass(frozen=True, slots=True)
class Check:
    """One line of a project's truth."""

    project: str
    wanted: str
    found: str
    holds: bool
    is_near: bool | None
    """Whether the predicted saving is within the factor of a measured one; None where nothing was measured."""


def check_project(folder: Path, detector: Looking | None = None) -> Iterator[Check]:
    """Every fault and control of one project against the findings of its trace."""
    truth: dict[str, Any] = json.loads((folder / "truth.json").read_text("utf-8"))
    report = place(analyze(read_trace(folder / "trace.json.gz"), detector=detector), open_workspace(folder))
    shown = [finding for finding in report.findings if finding.severity is not Severity.HINT]
    for fault in truth["faults"]:
        slugs = {fault["slug"], *fault.get("also_slugs", ())}
        found = [finding for finding in shown if finding.slug in slugs and _is_at(finding, fault)]
        measured = [fault[name] for name in MEASUREMENTS if name in fault]
        near = any(_is_near(finding.saving_pct, one) for finding in found for one in measured)
        wanted = f"{fault['slug']} at {fault['line']}, {' or '.join(f'{one:g} %' for one in measured)}"
        yield Check(folder.name, wanted, _described(found), any(finding.fixes for finding in found), near)
    for control in truth["controls"]:
        found = [finding for finding in shown if finding.slug == control["slug"] and _is_at(finding, control)]
        yield Check(folder.name, f"no {control['slug']} at {control['line']}", _described(found), not found, None)


def _is_at(finding: Finding, entry: dict[str, Any]) -> bool:
    where = finding.location
    if where is None:
        return False
    lines = range(entry["line"], entry.get("end_line", entry["line"]) + 1)
    return (where.path == entry["path"] and where.line in lines) or f"{where.path}:{where.line}" in entry["also_lines"]


def _is_near(predicted_pct: float, measured_pct: float) -> bool:
    return measured_pct / FACTOR <= predicted_pct <= measured_pct * FACTOR


def _described(found: Sequence[Finding]) -> str:
    return "; ".join(
        f"{finding.slug} at {finding.location.line if finding.location else '?'}, {finding.saving_pct:.1f} %, "
        + (f"{finding.fixes[0].safety.value} fix" if finding.fixes else "no fix")
        for finding in found
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a line does not hold."""
    folder = traces_folder("projects", __doc__, arguments, default=DEFAULT_FOLDER.parent / "projects")
    if folder is None:
        return 0
    detector = Shipped()
    checks = [check for path in sorted(folder.glob("*/truth.json")) for check in check_project(path.parent, detector)]
    table = Table("project", "wanted", "found", "", "saving")
    for check in checks:
        near = {True: "within 2x", False: "[yellow]off[/yellow]", None: ""}[check.is_near]
        table.add_row(check.project, check.wanted, check.found, "ok" if check.holds else "[red]WRONG[/red]", near)
    Console(width=140 if not sys.stdout.isatty() else None).print(table)
    faults = [check for check in checks if check.is_near is not None]
    wrong = sum(not check.holds for check in checks)
    print(f"{len(checks)} lines, {wrong} wrong; saving within 2x for {sum(map(_near, faults))} of {len(faults)} faults")
    return 1 if wrong else 0


def _near(check: Check) -> bool:
    return bool(check.is_near)


if __name__ == "__main__":
    raise SystemExit(main())
