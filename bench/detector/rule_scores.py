"""What the rules alone say of windows: the saving of each finding, spread over the windows that show it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from torchtraceap.analyzer.antipatterns import AntiPatternDetector
from torchtraceap.analyzer.assess import to_finding
from torchtraceap.analyzer.detector.model import Windows
from torchtraceap.analyzer.patterns.base import Candidate
from torchtraceap.analyzer.timeline.edit import Edit
from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.timeline.replay import replay
from torchtraceap.analyzer.trace.model import NONE, FloatArray, IntArray


def rule_scores(timeline: Timeline, windows: Windows, kinds: Sequence[str]) -> FloatArray:
    """Shape (windows, kinds): of the step, the share that the rule for each kind would save in each window, times the
    rule's probability. A kind without a rule has 0."""
    scores = np.zeros((len(windows), len(kinds)))
    baseline = replay(timeline.graph, Edit())
    place = {kind: number for number, kind in enumerate(kinds)}
    for found in AntiPatternDetector().detect(timeline).detected:
        candidate = found.candidate
        if found.pattern.slug in place and not candidate.needs_source:
            finding = to_finding(timeline, found.pattern, candidate, baseline=baseline)
            worth = max(finding.saving_pct, 0.0) / 100.0 * finding.probability
            scores[:, place[found.pattern.slug]] += worth * _parts(timeline, windows, candidate)
    return scores


def _parts(timeline: Timeline, windows: Windows, candidate: Candidate) -> FloatArray:
    """Which part of a candidate's time in its step each window has; where no event's time is the cost, which part of
    its occurrences."""
    rows = _rows(candidate)
    window = windows.of[rows]
    known = window != NONE
    weights = np.maximum(timeline.trace.dur_ns[rows[known]], 1)
    of_window = np.bincount(window[known], weights=weights, minlength=len(windows))
    of_step = np.bincount(windows.step, weights=of_window, minlength=1)[windows.step]
    return of_window / np.maximum(of_step, 1.0)


def _rows(candidate: Candidate) -> IntArray:
    costs = [occurrence.cost_rows for occurrence in candidate.occurrences]
    if any(len(rows) for rows in costs):
        return np.unique(np.concatenate(costs)).astype(np.int64)
    return np.unique(np.array([occurrence.anchor for occurrence in candidate.occurrences], dtype=np.int64))
