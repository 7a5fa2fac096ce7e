"""Reports made by hand, and the "traces" that the fabricated worker reads them from."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec

from torchtraceap.analyzer.findings import (
    Evidence,
    Finding,
    Fix,
    Hotspot,
    How,
    Location,
    Related,
    Report,
    Safety,
    Severity,
    TraceSummary,
)  # fmt: skip

STEP_US = 22_300.0


def place(path: str, line: int, column: int, end_column: int, qualname: str = "<module>", **changes) -> Location:
    return Location(path, line, column, changes.pop("end_line", line), end_column, qualname, How.STACK, **changes)


def finding(
    slug: str,
    location: Location | None,
    *,
    severity: Severity = Severity.WARNING,
    saving_us: float = 6100.0,
    safety: Safety = Safety.SAFE,
    related: tuple[Related, ...] = (),
    code: str = "TAP999",
) -> Finding:
    return Finding(
        code=code,
        slug=slug,
        severity=severity,
        title=f"{slug} is slow",
        message=f"{slug} happens: 9.80 of 22.3 ms per step; the other way would save about 6.10 ms (27 %)",
        cost_us_per_step=9800.0,
        saving_us_per_step=saving_us,
        saving_pct=100 * saving_us / STEP_US,
        probability=0.93,
        evidence=(
            Evidence("cost", "time per step", 9.8, "ms", (3, 14, 159)),
            Evidence("op", "operator", "aten::softmax | x", ""),
        ),
        location=location,
        related=related,
        fixes=(Fix(slug, "Use fixed", safety, ()),) if location else (),
    )


def report(*findings: Finding, hotspots: tuple[Hotspot, ...] = (), step_us: float = STEP_US) -> Report:
    summary = TraceSummary(("trace.json",), "CPU", 5, step_us, None, None, {}, (), ())
    return Report(summary, findings, hotspots)


def write_trace(path: Path, content: Report, *, recorded_s: float | None = None, **extra) -> Path:
    """Put a trace where a profiler would, as profilers do: under its final name, piece by piece."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"report": msgspec.to_builtins(content), **extra}))
    if recorded_s is not None:
        os.utime(path, (recorded_s, recorded_s))
    return path
