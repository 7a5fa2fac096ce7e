"""Questions from traces that other people recorded on real devices, by what is known of them (truth.json)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.detector.real import HEALTHY, LAST_LOOK
from torchtraceap.analyzer.analysis import analyze
from torchtraceap.analyzer.antipatterns import Looking
from torchtraceap.analyzer.detected import Analysis
from torchtraceap.analyzer.detector.parts import usual_parts
from torchtraceap.analyzer.findings import Report
from torchtraceap.analyzer.trace.read import read_trace
from torchtraceap.codemap.dossiers import DossierMaker
from torchtraceap.codemap.place import place

from .asked import FINDING, REAL, WINDOW
from .questions import Question

_WINDOWS = 8
"""Of a healthy recording, the dearest ones."""


def real_questions(folder: Path, detector: Looking, *, last_look: bool = False) -> Iterator[Question]:
    """The findings that `truth.json` calls true or false, and windows of recordings that it calls healthy. Folders that
    hold the ranks of a job are left out."""
    for name, truth in sorted(json.loads((folder / "truth.json").read_text("utf-8")).items()):
        short, path = name.partition("_")[0], folder / name
        if not path.is_file() or (short in LAST_LOOK) != last_look:
            continue
        analysis = analyze(read_trace(path), detector=detector)
        report = place(analysis, None)
        maker = DossierMaker(analysis, None)
        true = {*truth.get("warn", ()), *truth.get("must", ())}
        yield from _findings(short, maker, report, true, set(truth.get("must_not", ())))
        if short in HEALTHY and analysis.windows is not None:
            yield from _windows(short, maker, analysis)


def _findings(name: str, maker: DossierMaker, report: Report, true: set[str], false: set[str]) -> Iterator[Question]:
    seen: set[str] = set()
    for finding in sorted(report.findings, key=lambda one: -one.saving_pct):
        if finding.slug in seen or finding.cost_us_per_step <= 0.0 or finding.slug not in true | false:
            continue
        seen.add(finding.slug)
        right = (finding.slug,) if finding.slug in true else ()
        yield Question(maker.of_finding(finding, report.findings), right, REAL, name, FINDING)


def _windows(name: str, maker: DossierMaker, analysis: Analysis) -> Iterator[Question]:
    assert analysis.windows is not None
    parts = usual_parts(analysis.timeline, analysis.windows)
    for at in np.argsort([-part.share for part in parts], kind="stable")[:_WINDOWS].tolist():
        yield Question(maker.of_window(parts[at].window), (), REAL, name, WINDOW)
