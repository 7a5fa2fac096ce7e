"""The worker's jobs: the analyzer and the codemap, as the command line runs them.

Started as `python -m torchtraceap.server.jobs analysis|source`; the word says which imports are wanted at once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from ..analyzer.findings import Report
from ..codemap.fixes.base import Confirmation
from ..codemap.project import Parses
from ..codemap.survey import Survey
from .elsewhere import located, without
from .messages import Analyze, Analyzed, Index, Indexed, Recheck, Rechecked
from .places import paths_of
from .worker import JobError, OnProgress, run

if TYPE_CHECKING:
    from ..analyzer.detected import Analysis, Options
    from ..analyzer.detector.shipped import Shipped
    from ..analyzer.trace.model import Trace
    from ..codemap.workspace import Workspace

LISTED_FOR_S = 10.0
"""A recheck takes which files there are from a look that is no older; it is told of those that were written since."""
MOST_ROOTS = 16


class Pipeline:
    """The real analysis. Imports happen where they are used: the source worker needs no numpy."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._detector: Shipped | None = None
        self._parses = Parses()
        self._surveys: dict[str, Survey] = {}

    def warm_up(self) -> None:
        """Import what the first job will need."""
        from ..codemap.fixes.registry import fixers

        fixers()
        if self._kind == "analysis":
            from ..analyzer import analysis  # noqa: F401
            from ..analyzer.detector import shipped  # noqa: F401
            from ..codemap import place  # noqa: F401

    def analyze(self, job: Analyze, on_progress: OnProgress) -> Analyzed:
        """Read, analyse and place one trace, with the other ranks of its job beside it; write its JSON report."""
        from ..analyzer.detected import Options
        from ..analyzer.report.json import to_json
        from ..analyzer.trace.limits import TraceError
        from ..codemap.in_cells import in_cells

        started_s = time.perf_counter()
        options = Options(min_saving_pct=job.min_saving_pct, model_type=job.model_type)
        try:
            detector = self._shipped() if job.with_detector else None
            analysis = _analysis(Path(job.trace), options, detector, on_progress)
        except TraceError as error:
            raise JobError(str(error)) from error
        on_progress(0.8, "placing")
        answer, workspace = self._placed(job, job.root, job.overlay, analysis, options)
        elsewhere: dict[str, Analyzed] = {}
        if any(finding.location is None and not finding.stale for finding in answer.report.findings):
            for root, overlay in job.others.items():
                found = located(self._placed(job, root, overlay, analysis, options)[0])
                elsewhere |= {root: found} if found.report.findings else {}
        answer = without(answer, {finding.slug for one in elsewhere.values() for finding in one.report.findings})
        _write(Path(job.report_path), to_json(in_cells(answer.report, workspace.file)))
        return structs.replace(answer, seconds=time.perf_counter() - started_s, elsewhere=elsewhere)

    def _placed(
        self, job: Analyze, root: str, overlay: dict[str, str], analysis: Analysis, options: Options
    ) -> tuple[Analyzed, Workspace]:
        """What is found in the files of one folder."""
        from ..codemap.anchors import anchor_at
        from ..codemap.drift_history import open_history
        from ..codemap.place import device_facts, place
        from ..codemap.project import open_workspace
        from ..codemap.recheck import recheck

        survey = self._survey(root)
        workspace = open_workspace(Path(root), overlay, survey=survey)
        history = open_history(Path(root), [Path(path) for path in analysis.timeline.trace.info.paths])
        report = place(analysis, workspace, options, history)
        history.keep()
        survey.save()
        device = device_facts(analysis.timeline)
        files = {path: file for path in _paths(report) if (file := workspace.file(path)) is not None}
        anchors = tuple(
            anchor_at(files[where.path], where) if (where := finding.location) and where.path in files else None
            for finding in report.findings
        )
        confirmed = frozenset(
            position
            for position, (finding, anchor) in enumerate(zip(report.findings, anchors, strict=True))
            if recheck(finding, workspace, device, anchor) is not None
        )
        texts = {path: file.text for path, file in files.items()}
        return Analyzed(job.id, report, device, texts, confirmed, anchors, 0.0), workspace

    def recheck(self, job: Recheck) -> Rechecked:
        """Look at the source again."""
        from ..codemap.project import open_workspace
        from ..codemap.recheck import recheck

        survey = self._survey(job.root)
        workspace = open_workspace(
            Path(job.root), job.overlay, parses=self._parses, survey=survey, max_age_s=LISTED_FOR_S
        )
        started_s = time.perf_counter()
        answers: list[Confirmation | None] = []
        for suspect in job.suspects:
            if answers and time.perf_counter() - started_s > job.within_s:
                break
            answers.append(recheck(suspect.finding, workspace, suspect.device, suspect.anchor))
        return Rechecked(job.id, tuple(answers))

    def index(self, job: Index) -> Indexed:
        """Read what is new or changed in a workspace."""
        survey = self._survey(job.root)
        for path in job.changed:
            survey.update(path)
        if not job.changed:
            survey.refresh(job.max_age_s)
        left = survey.read(job.within_s)
        survey.save()
        return Indexed(job.id, len(survey.paths()), left)

    def _shipped(self) -> Shipped:
        """The detector, kept from job to job."""
        from ..analyzer.detector.shipped import Shipped

        self._detector = self._detector or Shipped()
        return self._detector

    def _survey(self, root: str) -> Survey:
        """What is known of the files below a folder, kept from job to job."""
        from ..codemap.cache import cache_path

        survey = self._surveys.pop(root, None)
        if survey is None:
            real = Path(root).resolve()
            survey = Survey(real, cache=cache_path(real))
        self._surveys[root] = survey  # the one used last comes last
        if len(self._surveys) > MOST_ROOTS:
            del self._surveys[next(iter(self._surveys))]
        return survey


def _analysis(trace: Path, options: Options, detector: Shipped | None, on_progress: OnProgress) -> Analysis:
    """The analysis of a trace, together with the complete traces of the job's other ranks."""
    from ..analyzer.analysis import analyze, analyze_job
    from ..analyzer.trace.limits import TraceError
    from ..analyzer.trace.read import read_trace
    from ..analyzer.trace.settle import is_complete
    from .ranks import is_only_called_a_job, ranks_beside

    paths = [path for path in ranks_beside(trace) if path == trace or is_complete(path)]

    def read(path: Path, before: float, share: float) -> Trace:
        return read_trace(path, on_progress=lambda part: on_progress(0.5 * (before + part * share), "reading"))

    def each_rank() -> Iterator[Trace | str]:
        for number, path in enumerate(paths):
            try:
                yield read(path, number / len(paths), 1 / len(paths))
            except TraceError as error:
                yield str(error)

    if len(paths) > 1:
        analysis = analyze_job(each_rank(), options, detector)
        if not is_only_called_a_job(analysis):
            return analysis
    alone = read(trace, 0.0, 1.0)
    on_progress(0.5, "analysing")
    return analyze(alone, options, detector)


def _paths(report: Report) -> set[str]:
    """The files that a report speaks of."""
    return {spot.path for spot in report.hotspots}.union(*map(paths_of, report.findings))


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"the report cannot be written: {error}", file=sys.stderr)  # noqa: T201  the log of a worker


if __name__ == "__main__":
    run(Pipeline(sys.argv[1]))
