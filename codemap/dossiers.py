"""Dossiers: what the second stage is told of a finding, or of a window without one.

They are made where the trace is at hand, and travel beside the report; nothing that reads one needs the trace again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import count

import numpy as np

from ..analyzer.detected import Analysis
from ..analyzer.detector.agreement import rows_of
from ..analyzer.detector.model import WindowScores
from ..analyzer.detector.parts import anchors, shares
from ..analyzer.diagnosis.choices import choices_of, found_in, opinion_of, rules_of, weight_of
from ..analyzer.diagnosis.dossier import Dossier, Excerpt, OfferedFix
from ..analyzer.diagnosis.figures import HEADLINE
from ..analyzer.diagnosis.tree import call_tree
from ..analyzer.findings import Evidence, Finding, Fix, Location, Report, Severity
from ..analyzer.patterns.missing import missing_options
from ..analyzer.timeline.columns import distinct, is_among
from ..analyzer.timeline.model import Phase
from ..analyzer.trace.model import DEVICE_CATEGORIES, NONE, IntArray
from .excerpts import excerpt
from .layer_rows import layer_rows
from .locate import Locator
from .place import device_facts
from .workspace import Workspace

_FIGURES = re.compile(r": \S+ of \S+ ms per step\b.*", re.DOTALL)
"""Of a finding's message: what follows the clause that says what happens."""
_OF_TITLE = re.compile(r" \((?:about .* per step|check results)\)")
_SAID_BY_CHOICES = frozenset({"detector", "detector-instead"})
"""Ids of evidence that the choices give already."""
_MOST_FIXES = 5


def make_dossiers(
    analysis: Analysis, report: Report, workspace: Workspace | None, most: int, *, with_hints: bool = False
) -> tuple[tuple[int, Dossier], ...]:
    """Dossiers of the findings that matter most, with each one's index in `report.findings`: the greatest saving times
    probability first, at most so many. `report` is what `place` made of the analysis."""
    maker = DossierMaker(analysis, workspace)
    findings = enumerate(report.findings)
    told = [(at, one) for at, one in findings if (with_hints or one.severity is not Severity.HINT) and _is_told(one)]
    told.sort(key=lambda pair: (-pair[1].saving_us_per_step * pair[1].probability, pair[0]))
    return tuple((at, maker.of_finding(one, report.findings)) for at, one in told[:most])


class DossierMaker:
    """Makes the dossiers of one analysis."""

    def __init__(self, analysis: Analysis, workspace: Workspace | None) -> None:
        self._analysis = analysis
        self._timeline = analysis.timeline
        self._workspace = workspace
        self._locator: Locator | None = None
        trace = self._timeline.trace
        self._row_of_event = np.full(int(trace.file_index.max(initial=NONE)) + 2, NONE, dtype=np.int64)
        self._row_of_event[trace.file_index] = np.arange(len(trace))

    def of_finding(self, finding: Finding, others: Iterable[Finding] = ()) -> Dossier:
        """The dossier of a finding of the analysis; `others` are the report's, of which those at the same place are
        choices too."""
        rows = self._rows(finding)
        opinion = opinion_of(self._analysis.windows, weight_of(self._timeline, self._analysis.windows, rows))
        beside = {one.slug for one in others if _are_at_one_place(one, finding)}
        rules = rules_of(self._analysis.detected)
        by_rule = {slug: rules[slug] for slug in {finding.slug, *beside} if slug in rules}
        step_ms = next((one.value for one in finding.evidence if one.id == "step"), None)
        return replace(
            self._common(rows),
            slug=finding.slug,
            summary=_FIGURES.sub("", finding.message),
            step_us=float(step_ms) * 1000.0 if step_ms is not None else self._timeline.step_us,
            cost_us_per_step=finding.cost_us_per_step,
            saving_us_per_step=finding.saving_us_per_step,
            saving_pct=finding.saving_pct,
            probability=finding.probability,
            bad=_rounded(opinion.bad) if opinion is not None else None,
            choices=choices_of(by_rule, opinion, finding.slug),
            evidence=_told(finding.evidence),
            source=self._source(finding),
            fixes=tuple(map(_offered, finding.fixes[:_MOST_FIXES])),
        )

    def of_window(self, window: int) -> Dossier:
        """The dossier of a window as it is in all steps: its region. Rules that found something there are choices, and
        their evidence is the dossier's. Frames that go on after the window are no part of it."""
        scores = self._scores()
        windows, timeline = scores.windows, self._timeline
        region = np.flatnonzero(windows.region == windows.region[window])
        inside = np.append(is_among(windows.region, [int(windows.region[window])]), False)[windows.of]
        weight = np.bincount(region, minlength=len(windows)).astype(np.float64)
        opinion = opinion_of(scores, weight)
        found = found_in(self._analysis, inside)
        rows = np.flatnonzero(inside)
        is_whole = timeline.trace.end_ns[rows] <= windows.end_ns[windows.of[rows]]
        is_whole |= is_among(timeline.trace.cat[rows], DEVICE_CATEGORIES)
        at = np.array([window])
        cost_us = float(shares(timeline, windows, at, at)[0]) * timeline.step_us
        return replace(
            self._common(rows[is_whole]),
            summary=f"a part of the step: {windows.regions[windows.region[window]]}",
            cost_us_per_step=round(cost_us, 3),
            bad=_rounded(opinion.bad) if opinion is not None else None,
            choices=choices_of(rules_of(found), opinion),
            evidence=_told(_together(one.candidate.evidence for one in found)),
            source=self._source_of_row(int(anchors(timeline, windows)[window])),
        )

    def _common(self, rows: IntArray) -> Dossier:
        """What hangs on the events alone."""
        timeline = self._timeline
        return Dossier(
            slug="",
            summary="",
            device=timeline.device.name,
            torch_version=device_facts(timeline).torch_version,
            is_training=bool((timeline.phase == Phase.BACKWARD).any()),
            step_us=timeline.step_us,
            cost_us_per_step=0.0,
            saving_us_per_step=0.0,
            saving_pct=0.0,
            probability=0.0,
            bad=None,
            choices=(),
            evidence=(),
            tree=call_tree(timeline, rows),
            layers=layer_rows(timeline),
            source=None,
            fixes=(),
            missing=missing_options(timeline),
        )

    def _rows(self, finding: Finding) -> IntArray:
        """The events of a finding: those of its cost, else those that its evidence cites, else those of its rule."""
        cost = [event for one in finding.evidence if one.id == "cost" for event in one.events]
        events = np.array(cost or [event for one in finding.evidence for event in one.events], dtype=np.int64)
        rows = self._row_of_event[events[events < len(self._row_of_event)]]
        if len(rows := distinct(rows[rows != NONE])):
            return rows
        same = [rows_of(one.candidate) for one in self._analysis.detected if one.pattern.slug == finding.slug]
        return distinct(np.concatenate(same)) if same else rows

    def _source(self, finding: Finding) -> Excerpt | None:
        if self._workspace is None or finding.stale:
            return None
        return excerpt(self._workspace, finding.location)

    def _source_of_row(self, row: int) -> Excerpt | None:
        if self._workspace is None or row == NONE:
            return None
        self._locator = self._locator or Locator(self._timeline, self._workspace)
        place = self._locator.locate(row)
        return excerpt(self._workspace, place.location) if place is not None else None

    def _scores(self) -> WindowScores:
        if self._analysis.windows is None:
            raise ValueError("the analysis was made without the detector: it has no windows")
        return self._analysis.windows


def _is_told(finding: Finding) -> bool:
    """Whether there is something to explain: it costs time."""
    return finding.cost_us_per_step > 0.0


def _are_at_one_place(one: Finding, other: Finding) -> bool:
    return one is not other and one.location is not None and _function(one.location) == _function(other.location)


def _function(location: Location | None) -> tuple[str, str] | None:
    return (location.path, location.qualname) if location is not None else None


def _told(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Without what the headline and the choices say, and without the events: an explanation needs figures only."""
    hidden = HEADLINE | _SAID_BY_CHOICES
    return tuple(replace(one, events=()) for one in evidence if one.id not in hidden)


def _together(parts: Iterable[Iterable[Evidence]]) -> list[Evidence]:
    """The evidence of several findings, no id twice: of equal ones the later get a number."""
    found: dict[str, Evidence] = {}
    for one in (one for part in parts for one in part):
        names = (one.id if number == 1 else f"{one.id}-{number}" for number in count(1))
        name = next(name for name in names if name not in found)
        found[name] = replace(one, id=name)
    return list(found.values())


def _offered(fix: Fix) -> OfferedFix:
    return OfferedFix(fix.id, _OF_TITLE.sub("", fix.title), fix.safety)


def _rounded(probability: float) -> float:
    return round(probability, 3)
