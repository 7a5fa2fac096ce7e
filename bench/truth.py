"""What is known of the recorded traces beside what the analysis finds: `python -m bench.truth [FOLDER]`.

FOLDER holds traces and a `truth.json` (default: ../shared/traces). The exit status is 1 if a line of it does not hold.
Lines about patterns that have no rule yet are listed, and count neither way.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from torchtraceap.analyzer.analysis import analyze, analyze_job
from torchtraceap.analyzer.assess import price_all
from torchtraceap.analyzer.detector.shipped import Shipped
from torchtraceap.analyzer.findings import Finding, Severity
from torchtraceap.analyzer.order import in_order_of_work
from torchtraceap.analyzer.patterns.registry import all_patterns
from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.read import read_trace

from .folder import traces_folder

TOLERANCE_POINTS = 0.2
STATEMENT = "trace-lacks-evidence"
"""Says what the recording lacks, not what the program does wrong: allowed where nothing may be made up."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the truth and whether it holds; None where there is no rule for it yet."""

    trace: str
    wanted: str
    found: str
    holds: bool | None


def check_trace(name: str, truth: Mapping[str, Any], timeline: Timeline, found: Sequence[Finding]) -> Iterator[Check]:
    """Every line of the truth of one trace, or of one job's folder, against its findings."""
    by_slug = {finding.slug: finding for finding in sorted(found, key=lambda finding: finding.saving_pct)}
    shown = {slug: finding for slug, finding in by_slug.items() if finding.severity is not Severity.HINT}
    known = {pattern.slug for pattern in all_patterns()}

    def check(wanted: str, slug: str, holds: bool) -> Check:
        return Check(name, f"{wanted} {slug}", _describe(by_slug.get(slug)), holds if slug in known else None)

    for slug in truth.get("warn", ()):
        yield check("warn", slug, slug in shown)
    for slug in truth.get("must", ()):
        yield check("must", slug, slug in by_slug)
    for slug in truth.get("must_not", ()):
        yield check("must not", slug, slug not in shown)
    if first := truth.get("first"):
        leader = min(shown.values(), key=in_order_of_work, default=None)
        yield check("first", first, leader is not None and leader.slug == first)
    if truth.get("silent") or truth.get("format_only"):
        loud = sorted(set(shown) - ({STATEMENT} if truth.get("format_only") else set()))
        yield Check(
            name, "silent" if truth.get("silent") else "no made-up finding", ", ".join(loud) or "silent", not loud
        )
    yield from _figures(name, truth.get("figures", {}), timeline)


def _figures(name: str, figures: Mapping[str, float], timeline: Timeline) -> Iterator[Check]:
    breakdown = timeline.breakdown
    measured = {
        "gpu_idle_pct": breakdown.gpu_idle_pct,
        "step_idle_pct": breakdown.step_idle_pct,
        "dataloader_pct_of_step": breakdown.data_loading_pct,
    }
    for figure, wanted in figures.items():
        if figure in measured:
            found = measured[figure]
            yield Check(name, f"{figure} {wanted}", f"{found:.1f}", abs(found - wanted) <= TOLERANCE_POINTS)


def _describe(finding: Finding | None) -> str:
    return f"{finding.severity.value}, {finding.saving_pct:.1f} %" if finding else "absent"


def check_folder(folder: Path) -> Iterator[Check]:
    """Analyse every trace that the folder's truth.json names, as the command line does; a folder in it holds the ranks
    of one job."""
    detector = Shipped()
    truths: dict[str, dict[str, Any]] = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    for name, truth in truths.items():
        path = folder / name
        analysis = (
            analyze_job(map(read_trace, sorted(path.glob("*.json*"))), detector=detector)
            if path.is_dir()
            else analyze(read_trace(path), detector=detector)
        )
        yield from check_trace(name, truth, analysis.timeline, price_all(analysis))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if any line does not hold."""
    folder = traces_folder("truth", __doc__, arguments, needs="truth.json")
    if folder is None:
        return 0
    table = Table("trace", "wanted", "found", "")
    checks = list(check_folder(folder))
    for check in checks:
        verdict = {True: "ok", False: "[red]WRONG[/red]", None: "no rule yet"}[check.holds]
        table.add_row(check.trace.split(".")[0], check.wanted, check.found, verdict)
    Console(width=140 if not sys.stdout.isatty() else None).print(table)
    wrong = sum(check.holds is False for check in checks)
    print(f"{len(checks)} lines, {wrong} wrong, {sum(check.holds is None for check in checks)} without a rule yet")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
