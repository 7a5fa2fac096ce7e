"""What people really ran into, case by case, wanted and got: `python -m bench.cases [ID ...]`.

A case is a folder of tests/cases: `source.py`, a small program with the fault (or with what only looks like one), whose
head says what is wanted, and, where the fault needs a device or several ranks, `trace.py` with `build()`, which makes
the trace. Without it `source.main(profiler)` is run on the CPU and recorded. The exit status is 1 if a case fails.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import re
import sys
import tempfile
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from torchtraceap.analyzer.analysis import analyze, analyze_job
from torchtraceap.analyzer.antipatterns import Looking
from torchtraceap.analyzer.detected import DEFAULTS, Analysis, Options
from torchtraceap.analyzer.detector.shipped import Shipped
from torchtraceap.analyzer.findings import Finding, Fix, Safety, Severity
from torchtraceap.analyzer.trace.model import Trace
from torchtraceap.analyzer.trace.read import read_trace
from torchtraceap.codemap.edits import apply_to_files
from torchtraceap.codemap.place import place
from torchtraceap.codemap.project import open_workspace

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "cases"
REPORTS = ROOT.parent / "shared" / "cases" / "cases.json"
"""The reports that the cases were made from, where they are at hand: says which of them have none."""
SOURCE = "source.py"
STATEMENT = "trace-lacks-evidence"
_DIRECTIVE = re.compile(r"# (\w+): (.*)")
MIN_SAVING_PCT = 0.3
"""Lower than a user's: what is recorded anew each time costs now more, now less on a busy machine."""
_FIXES = ("safe", "unsafe", "none")


@dataclass(frozen=True, slots=True)
class Case:
    """A program and what is wanted of it."""

    folder: Path
    slugs: tuple[str, ...]
    """Any of these is right for a fault; none of them may be shown for a control."""
    is_fault: bool
    lines: tuple[int, ...]
    """Equally good lines, from 1."""
    fix: str
    """The best fix wanted: "safe", "unsafe" or "none"; for a control "none" says that the finding may be shown, but
    without a fix, and "" that nothing may be shown."""

    @property
    def wanted(self) -> str:
        """In words."""
        if not self.is_fault:
            return f"{' or '.join(self.slugs)}: " + ("no fix" if self.fix else "silent")
        lines = ",".join(map(str, self.lines))
        return f"{' or '.join(self.slugs)} at {lines}, {self.fix} fix"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case."""

    case: Case
    got: str
    holds: bool


def load(folder: Path) -> Case:
    """A case from its folder. ValueError, saying why, if its head is not as it must be."""
    said: dict[str, list[str]] = {}
    text = (folder / SOURCE).read_text("utf-8").splitlines()
    for line in text:
        if not (found := _DIRECTIVE.fullmatch(line)):
            break
        said.setdefault(found[1], []).append(found[2])
    verdict, fix = said.get("verdict", [""])[0], said.get("fix", [""])[0]
    if "slug" not in said or verdict not in ("fault", "control") or fix not in ("", *_FIXES):
        raise ValueError(f"{folder.name}: the head must give slug, verdict (fault or control) and fix")
    code = [(number, line) for number, line in enumerate(text, 1) if not _DIRECTIVE.fullmatch(line)]
    lines = [next((n for n, line in code if wanted in line), 0) for wanted in said.get("at", [])]
    if 0 in lines or (verdict == "fault" and not (lines and fix)):
        raise ValueError(f"{folder.name}: a fault must give fix, and at least one line that is there")
    slugs = tuple(slug.strip() for slug in said["slug"][0].split(","))
    silent = said.get("silent", ["no"])[0] == "yes"
    return Case(folder, slugs, verdict == "fault", tuple(lines), "" if silent else fix)


def cases(names: Sequence[str] = ()) -> list[Case]:
    """All cases, or those named."""
    folders = sorted(path.parent for path in FOLDER.glob(f"*/{SOURCE}"))
    return [load(folder) for folder in folders if not names or folder.name in names]


def run(case: Case, detector: Looking | None = None) -> Outcome:
    """Record or build the case's trace, analyse it, and compare with what is wanted."""
    traces = _built(case) if (case.folder / "trace.py").exists() else [_recorded(case)]
    options = Options(MIN_SAVING_PCT) if case.is_fault else DEFAULTS
    report = place(_analysis(traces, detector), open_workspace(case.folder), options)
    shown = [finding for finding in report.findings if finding.severity is not Severity.HINT]
    named = [finding for finding in shown if finding.slug in case.slugs]
    got = "; ".join(map(_describe, named)) or "silent"
    if not case.is_fault:
        return Outcome(case, got, not named if not case.fix else not any(finding.fixes for finding in named))
    right = [finding for finding in named if _is_there(finding, case)]
    if not right:
        others = [_describe(finding) for finding in report.findings if finding.slug != STATEMENT]
        return Outcome(case, f"{got} (else: {'; '.join(others) or 'nothing'})", False)
    complaint = "no such fix" if not any(_has_fix(finding, case) for finding in right) else _compare(case, right)
    return Outcome(case, got + (f"; {complaint}" if complaint else ""), not complaint)


def _analysis(traces: Sequence[Trace], detector: Looking | None) -> Analysis:
    if len(traces) == 1:
        return analyze(traces[0], detector=detector)
    return analyze_job(traces, detector=detector)


def _is_there(finding: Finding, case: Case) -> bool:
    where = finding.location
    return where is not None and where.path == SOURCE and where.line in case.lines


def _has_fix(finding: Finding, case: Case) -> bool:
    if case.fix == "none":
        return not finding.fixes
    return any(fix.safety.value == case.fix for fix in finding.fixes)


def _describe(finding: Finding) -> str:
    where = f" at {finding.location.path}:{finding.location.line}" if finding.location else ""
    fix = "safe" if any(f.safety is Safety.SAFE for f in finding.fixes) else "unsafe" if finding.fixes else "no"
    return f"{finding.slug} ({finding.severity.value}, {finding.saving_pct:.0f} %){where}, {fix} fix"


def _compare(case: Case, findings: Sequence[Finding]) -> str:
    """What is wrong with the code after; "" if it computes what the code before does, or the case has no `result`."""
    text = (case.folder / SOURCE).read_text("utf-8")
    fixes = [fix for finding in findings for fix in finding.fixes if fix.safety.value == case.fix]
    if "\ndef result(" not in text or not fixes:
        return ""
    import torch

    before = _module(case, text).result()
    for fix in fixes:
        after = _module(case, _fixed(text, fix)).result()
        try:
            torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-5, equal_nan=True)
        except AssertionError as error:
            return f"{fix.id} changes the result: {str(error).splitlines()[0]}"
    return ""


def _fixed(text: str, fix: Fix) -> str:
    return apply_to_files({SOURCE: text}, fix.edits)[SOURCE]


def _recorded(case: Case) -> Trace:
    """Run `main(profiler)` of the case as its author would, and record it."""
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    module = _module(case, (case.folder / SOURCE).read_text("utf-8"))
    try:
        with (
            profile(
                activities=[ProfilerActivity.CPU],
                schedule=schedule(wait=1, warmup=1, active=4, repeat=1),
                record_shapes=True,
                with_stack=True,
            ) as profiler,
            contextlib.redirect_stdout(io.StringIO()),
        ):
            module.main(profiler)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "case.pt.trace.json"
            profiler.export_chrome_trace(str(path))
            return read_trace(path)
    finally:
        torch.set_num_threads(threads)


def _built(case: Case) -> list[Trace]:
    spec = importlib.util.spec_from_file_location(f"case_{case.folder.name}", case.folder / "trace.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    built = module.build()
    return built if isinstance(built, list) else [built]


def _module(case: Case, text: str) -> Any:
    """The case's program, imported from a text of it; while it runs it is a module like any other."""
    module = types.ModuleType("source")
    module.__file__ = str(case.folder / SOURCE)
    sys.modules["source"] = module
    exec(compile(text, module.__file__, "exec"), module.__dict__)
    return module


def without_fixture(found: Sequence[Case]) -> Iterator[str]:
    """Reports that no case was made from, as "ID title"; none where the reports are not at hand."""
    if REPORTS.is_file():
        made = {case.folder.name for case in found}
        for report in json.loads(REPORTS.read_text("utf-8")):
            if report["id"] not in made:
                yield f"{report['id']} {report['title']}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a case fails."""
    parser = argparse.ArgumentParser(prog="python -m bench.cases", description=__doc__)
    parser.add_argument("case", nargs="*", help="names of cases (default: all)")
    names = parser.parse_args(arguments).case
    detector = Shipped()
    outcomes = [run(case, detector) for case in cases(names)]
    table = Table("case", "wanted", "got", "")
    for outcome in outcomes:
        verdict = Text("ok") if outcome.holds else Text("WRONG", "red")
        table.add_row(outcome.case.folder.name, outcome.case.wanted, outcome.got, verdict)
    Console(width=140 if not sys.stdout.isatty() else None).print(table)
    if not names:
        for missing in without_fixture([outcome.case for outcome in outcomes]):
            print(f"no fixture: {missing}")
    wrong = sum(not outcome.holds for outcome in outcomes)
    print(f"{len(outcomes)} cases, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
