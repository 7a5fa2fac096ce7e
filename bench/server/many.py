# pyright: reportMissingImports=false
"""A worker whose analysis is a given report: it puts 500 findings into the server without 500 faults being recorded.

The recheck and the fixes are the real ones, on a generated file of 2,000 lines.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from torchtraceap.analyzer.findings import Evidence, Finding, Fix, How, Location, Report, Safety, Severity, TraceSummary
from torchtraceap.codemap.anchors import anchor_at
from torchtraceap.codemap.fixes.base import DeviceFacts
from torchtraceap.codemap.project import open_workspace
from torchtraceap.server.app import serve
from torchtraceap.server.jobs import Pipeline
from torchtraceap.server.messages import Analyze, Analyzed
from torchtraceap.server.worker import OnProgress, run

FINDINGS = 500
LINES = 2000
SLUG = "dataloader-in-main-process"
CALL = "DataLoader(data, batch_size=8)"


def source() -> str:
    """A file of `LINES` lines with a loader to fix in each of `FINDINGS` functions."""
    parts = ["from torch.utils.data import DataLoader\n\n"]
    each = LINES // FINDINGS
    for number in range(FINDINGS):
        body = [f"def load_{number}(data):\n", f"    return {CALL}\n", *["\n"] * (each - 2)]
        parts += body
    return "".join(parts)


def location(number: int) -> Location:
    """Where the loader of function `number` is."""
    line = 3 + number * (LINES // FINDINGS) + 1
    return Location("many.py", line, 12, line, 12 + len(CALL), f"load_{number}", How.STACK)


def report() -> Report:
    """A finding at each loader."""
    evidence = tuple(Evidence(f"e{i}", f"figure {i}", 1.5 * i, "ms", (i, i + 1)) for i in range(4))
    summary = TraceSummary(("many.json",), "CPU", 5, 20_000.0, None, None, {}, (), ())
    return Report(summary, tuple(_finding(number, evidence) for number in range(FINDINGS)))


def _finding(number: int, evidence: tuple[Evidence, ...]) -> Finding:
    fix = Fix(SLUG, "Load in worker processes", Safety.SAFE, ())
    return Finding(
        "TAP101", SLUG, Severity.WARNING, "loading in the main process", "loading: 9.80 of 20.0 ms per step",
        9800.0, 6100.0, 30.5, 0.9, evidence, location(number), (), (fix,),
    )  # fmt: skip


class Many(Pipeline):
    """The real worker but for the analysis."""

    def analyze(self, job: Analyze, on_progress: OnProgress) -> Analyzed:
        """Answer the report that the "trace" holds."""
        content = msgspec.json.decode(Path(job.trace).read_bytes(), type=Report)
        file = open_workspace(Path(job.root), job.overlay).file("many.py")
        assert file is not None
        anchors = tuple(anchor_at(file, where) for f in content.findings if (where := f.location))
        everything = frozenset(range(len(content.findings)))
        return Analyzed(job.id, content, DeviceFacts(is_cpu=True), {"many.py": file.text}, everything, anchors, 0.0)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(Many(sys.argv[1]))
    else:
        sys.exit(serve((sys.executable, __file__)))
