"""What is asked of a kept trace: its findings and its windows as dossiers, each with what is known to be right.

A finding is true where its kind was put in (or is a fact of the trace) and has spoiled the windows that it lies in. One
that nobody put in, in windows that no kind has spoiled, is false if it would save less than matters: present is not
costly. Where it would save more nobody knows whether the model's author meant it, and it is left out, with its windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import numpy as np

from torchtraceap.analyzer.analysis import analyze
from torchtraceap.analyzer.antipatterns import Looking
from torchtraceap.analyzer.assess import LIKELY, to_finding
from torchtraceap.analyzer.detected import DEFAULTS, Analysis
from torchtraceap.analyzer.detector.agreement import time_in_windows
from torchtraceap.analyzer.detector.model import Windows, WindowScores
from torchtraceap.analyzer.detector.training.dataset import BAD_SHARE
from torchtraceap.analyzer.findings import Finding
from torchtraceap.analyzer.patterns.base import Candidate
from torchtraceap.analyzer.timeline.edit import Edit
from torchtraceap.analyzer.timeline.replay import replay
from torchtraceap.analyzer.trace.model import FloatArray
from torchtraceap.analyzer.trace.read import read_trace
from torchtraceap.codemap.dossiers import DossierMaker

from .labelled import Kept, Labels, labels_of
from .questions import Question

FINDING, WINDOW = "finding", "window"
REAL = "real"
"""The family of what others recorded."""
_TOUCHED = 0.02
"""Share of a window that a kind must have spoiled for a finding of it there to be true."""
_MOSTLY = 0.5
_MOST_EACH = 7
"""Windows of a trace that show a kind, and that show none."""
_LEAST_ASKED = 0.01
"""Windows that take less of the step than this are not asked about: nobody would."""


@dataclass(frozen=True, slots=True)
class _Priced:
    """A rule's finding, and how much of its time lies in each region."""

    finding: Finding
    time_ns: FloatArray
    """Shape (regions,)."""

    @property
    def is_shown(self) -> bool:
        """Whether users would see it as more than a hint."""
        return self.finding.saving_pct >= DEFAULTS.min_saving_pct and self.finding.probability >= LIKELY


def questions_of(kept: Kept, detector: Looking, rng: Random) -> Iterator[Question]:
    """All questions of one trace, in a drawn order. Raises TraceError, and ValueError where its labels do not fit, or
    the detector has nothing to say."""
    analysis = analyze(read_trace(kept.trace), detector=detector)
    scores = analysis.windows
    if scores is None:
        raise ValueError(f"{kept.trace.name}: {'; '.join(analysis.failures)}")
    labels = labels_of(kept, scores.windows)
    priced, maker = list(_priced(analysis, scores)), DossierMaker(analysis, None)
    found = [
        *_of_findings(kept, maker, labels, priced),
        *_of_windows(kept, maker, scores.windows, labels, _asked_regions(scores.windows, labels, priced, rng)),
    ]
    yield from rng.sample(found, len(found))


def _priced(analysis: Analysis, scores: WindowScores) -> Iterator[_Priced]:
    timeline = analysis.timeline
    baseline = replay(timeline.graph, Edit())
    for one in analysis.detected:
        if _is_priced(one.candidate):
            finding = to_finding(timeline, one.pattern, one.candidate, DEFAULTS, baseline, scores)
            spent_ns = time_in_windows(timeline, one.candidate, scores)
            regions = len(scores.windows.regions)
            yield _Priced(finding, np.bincount(scores.windows.region, weights=spent_ns, minlength=regions))


def _is_priced(candidate: Candidate) -> bool:
    """Whether the trace alone shows it: what only the source can tell has no place here."""
    apart = candidate.informational or candidate.unmeasured or candidate.unexplained or candidate.needs_source
    return bool(candidate.occurrences) and not apart


def _of_findings(kept: Kept, maker: DossierMaker, labels: Labels, priced: list[_Priced]) -> Iterator[Question]:
    for one in priced:
        if _is_true(one, labels):
            right = (one.finding.slug,)
        elif not one.is_shown and _is_clean(one, labels):
            right = ()
        else:
            continue
        yield Question(maker.of_finding(one.finding), right, kept.family, kept.trace.name, FINDING)


def _asked_regions(windows: Windows, labels: Labels, priced: list[_Priced], rng: Random) -> list[int]:
    """The regions that are asked about: drawn ones that show a kind, and drawn ones that show none."""
    doubtful = [one for one in priced if one.is_shown and not _is_true(one, labels)]
    spent_ns = np.bincount(windows.region, weights=windows.end_ns - windows.start_ns)
    dear = np.flatnonzero(labels.known & (labels.cost >= _LEAST_ASKED)).tolist()
    bad = [region for region in dear if labels.shown[region].any()]
    healthy = [
        region
        for region in dear
        if region not in bad and not any(_lies_in(one, region, float(spent_ns[region])) for one in doubtful)
    ]
    return [region for some in (bad, healthy) for region in rng.sample(some, min(len(some), _MOST_EACH))]


def _of_windows(
    kept: Kept, maker: DossierMaker, windows: Windows, labels: Labels, regions: list[int]
) -> Iterator[Question]:
    for region in regions:
        window = int(np.argmax(windows.region == region))
        right = labels.shown_in(region)
        yield Question(maker.of_window(window), right, kept.family, kept.trace.name, WINDOW)


def _lies_in(one: _Priced, region: int, region_ns: float) -> bool:
    """Whether a finding has most of its time in a region, or the region much of its time in the finding."""
    inside_ns = float(one.time_ns[region])
    return inside_ns >= _MOSTLY * max(float(one.time_ns.sum()), 1.0) or inside_ns >= BAD_SHARE * region_ns


def _is_true(one: _Priced, labels: Labels) -> bool:
    slug = one.finding.slug
    if slug not in labels.injected:
        return False
    touched = labels.share[:, labels.kinds.index(slug)] >= _TOUCHED
    time_ns = one.time_ns * labels.known
    return float((time_ns * touched).sum()) >= _MOSTLY * max(float(time_ns.sum()), 1.0)


def _is_clean(one: _Priced, labels: Labels) -> bool:
    """Whether no kind has spoiled anything of the windows that it lies in."""
    inside = np.flatnonzero(one.time_ns * labels.known)
    return one.finding.slug not in labels.injected and all(labels.is_clean(int(region), BAD_SHARE) for region in inside)
