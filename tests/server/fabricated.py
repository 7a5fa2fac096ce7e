"""A server whose worker reads reports from "traces" that hold them, and whose faults are words in the source.

Run as a script it is the server; `python fabricated.py analysis|source` is its worker. A trace is a JSON object
`{"report": Report}`; with `"sleep_s"` the analysis takes that long, with `"die": true` the process kills itself. A
finding is confirmed while its slug stands on its line, and its fix replaces the slug by `fixed`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import msgspec

from torchtraceap.analyzer.findings import Finding, Fix, Report, Safety, TextEdit
from torchtraceap.codemap.fixes.base import Confirmation, DeviceFacts
from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.workspace import Workspace
from torchtraceap.server.messages import Analyze, Analyzed, Index, Indexed, Recheck, Rechecked
from torchtraceap.server.worker import JobError, OnProgress, run


class Fabricated:
    """The worker's jobs without an analyzer."""

    def warm_up(self) -> None:
        pass

    def analyze(self, job: Analyze, on_progress: OnProgress) -> Analyzed:
        started_s = time.perf_counter()
        try:
            document = json.loads(Path(job.trace).read_bytes())
        except ValueError as error:
            raise JobError(f"not a trace: {error}") from error
        if document.get("die"):
            os.kill(os.getpid(), signal.SIGKILL)
        on_progress(0.1, "reading")
        time.sleep(document.get("sleep_s", 0))
        on_progress(0.9, "placing")
        print("a library prints to standard output")  # noqa: T201
        Path(job.report_path).parent.mkdir(parents=True, exist_ok=True)
        Path(job.report_path).write_text("{}")
        answer = placed(job, document["report"], job.root, job.overlay)
        content = document.get("elsewhere")
        elsewhere = {root: placed(job, content, root, overlay) for root, overlay in job.others.items() if content}
        return msgspec.structs.replace(answer, seconds=time.perf_counter() - started_s, elsewhere=elsewhere)

    def recheck(self, job: Recheck) -> Rechecked:
        workspace = open_workspace(Path(job.root), job.overlay)
        return Rechecked(job.id, tuple(confirm(one.finding, workspace) for one in job.suspects))

    def index(self, job: Index) -> Indexed:
        return Indexed(job.id, 0, 0)


def placed(job: Analyze, content: object, root: str, overlay: dict[str, str]) -> Analyzed:
    report = msgspec.convert(content, Report)
    workspace = open_workspace(Path(root), overlay)
    confirmed = {i for i, f in enumerate(report.findings) if confirm(f, workspace) is not None}
    paths = {f.location.path for f in report.findings if f.location} | {h.path for h in report.hotspots}
    sources = {path: file.text for path in paths if (file := workspace.file(path))}
    anchors = (None,) * len(report.findings)
    return Analyzed(job.id, report, DeviceFacts(), sources, frozenset(confirmed), anchors, 0.0)


def confirm(finding: Finding, workspace: Workspace) -> Confirmation | None:
    where = finding.location
    file = workspace.file(where.path) if where else None
    if where is None or file is None or where.line > len(file.lines):
        return None
    line = file.lines[where.line - 1]
    column = line.partition("#")[0].find(finding.slug) + 1
    if column == 0:
        return None
    end = column + len(finding.slug)
    edit = TextEdit(where.path, where.line, column, where.line, end, "fixed")
    location = replace(where, column=column, end_line=where.line, end_column=end)
    return Confirmation(location, (Fix(finding.slug, "Use fixed", _safety(finding), (edit,)),), finding.related)


def _safety(finding: Finding) -> Safety:
    return finding.fixes[0].safety if finding.fixes else Safety.SAFE


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(Fabricated())
    else:
        from torchtraceap.server.app import serve

        sys.exit(serve((sys.executable, __file__)))
