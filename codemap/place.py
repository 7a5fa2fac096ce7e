"""`place(analysis, workspace) -> Report` is the whole codemap: findings on their lines, confirmed, with fixes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..analyzer.antipatterns import holds_for
from ..analyzer.assess import summarize, to_finding
from ..analyzer.combine import Combined, combine
from ..analyzer.detected import DEFAULTS, Analysis, Detected, Options
from ..analyzer.detector.model import WindowScores
from ..analyzer.findings import (
    CURED,
    Evidence,
    Finding,
    Hotspot,
    How,
    Location,
    Related,
    Report,
    Severity,
    Tables,
    TraceSummary,
)
from ..analyzer.patterns.base import Candidate, Occurrence, Pattern
from ..analyzer.timeline.edit import Edit
from ..analyzer.timeline.family import Family
from ..analyzer.timeline.model import Timeline
from ..analyzer.timeline.replay import Replayed, replay
from .asking import called_from, inside_library, is_same_line, spent_in
from .confirm import Confirmer
from .drift import find_drift
from .drift_history import History
from .drift_locator import FollowingLocator
from .families import recognise
from .fixes.base import Confirmation, DeviceFacts, Fixer
from .fixes.registry import fixer_of
from .hotspots import hotspots
from .locate import Locator
from .statements import Place
from .suppress import is_suppressed
from .tables import tables
from .titles import titled
from .workspace import Workspace

_MOST_CALLERS = 8
_MOST_TRIED = 12
"""Statements that are asked for one finding that concerns the program as a whole."""


def place(
    analysis: Analysis, workspace: Workspace | None, options: Options = DEFAULTS, history: History | None = None
) -> Report:
    """Put what the rules found on lines of the workspace; without one, price it only.

    Occurrences are joined by pattern and statement and priced again; findings that the source asks to be silent
    about are left out. Findings come in the order in which to do them. With a `history` of the workspace, files that
    were edited since the recording are known: what ran is placed in the text that ran, and followed to that of today.
    """
    timeline = analysis.timeline
    pricer = _Pricer(timeline, options, analysis.windows)
    summary = _with_problems(summarize(timeline, analysis.family, analysis.windows), analysis.failures)
    if workspace is None:
        priced = [(pricer.price(d.pattern, d.candidate), d.candidate.edit) for d in analysis.detected]
        return _report(summary, combine(timeline, pricer.baseline, priced), *_tables(analysis, None, options))
    locator = FollowingLocator(timeline, workspace, find_drift(timeline.trace, workspace, history))
    family = analysis.family or _family_of_source(workspace, locator)
    summary = replace(summary, model_type=family.value if family else "")
    confirmer = Confirmer(workspace, device_facts(timeline), locator.recorded_files)
    sites: dict[tuple[str, object], _Site] = {}
    for number, detected in enumerate(analysis.detected):
        if not holds_for(detected.pattern, family):
            continue
        whole = pricer.price(detected.pattern, detected.candidate)
        for site in _sites(detected, whole, locator, confirmer):
            where = (site.location.path, site.location.line) if site.location else site.stale or number
            key = (detected.pattern.slug, where)
            sites[key] = sites[key].joined(site) if key in sites else site
    shown = [site for site in sites.values() if _is_shown(site, workspace)]
    priced = [(_finding(site, pricer, confirmer), site.candidate.edit) for site in shown]
    summary = _with_problems(summary, confirmer.failures.values())
    combined = combine(timeline, pricer.baseline, priced)
    spots = locator.of_today(hotspots(timeline, locator))
    return _report(summary, combined, *_tables(analysis, locator, options), spots)


def _tables(analysis: Analysis, locator: Locator | None, options: Options) -> tuple[Tables, tuple[str, ...]]:
    """The tables, and in words what is wrong if there are none."""
    scores = analysis.windows if options.with_windows else None
    try:
        return tables(analysis.timeline, locator, with_feature_maps=options.with_feature_maps, scores=scores), ()
    except Exception as error:  # noqa: BLE001 - a fault in a table must not cost the findings
        return Tables(), (f"the tables failed and are left out: {type(error).__name__}: {error}",)


def _report(
    summary: TraceSummary,
    combined: Combined,
    found: Tables,
    problems: Iterable[str],
    spots: tuple[Hotspot, ...] = (),
) -> Report:
    summary = replace(
        _with_problems(summary, problems),
        combined_saving_us_per_step=combined.saving_us_per_step,
        combined_saving_pct=combined.saving_pct,
    )
    return Report(summary, combined.findings, spots, found)


def _family_of_source(workspace: Workspace, locator: Locator) -> Family | None:
    """The model's family by the source that was recorded, for a trace that does not show it."""
    files = locator.recorded_files
    return recognise(workspace, files.sample()) if files is not None else None


def _with_problems(summary: TraceSummary, problems: Iterable[str]) -> TraceSummary:
    return replace(summary, problems=(*summary.problems, *problems))


def device_facts(timeline: Timeline) -> DeviceFacts:
    """What fixers may know of the recording."""
    device, trace = timeline.device, timeline.trace
    version = trace.info.torch_version or (trace.recording.torch_version if trace.recording else "")
    return DeviceFacts(device.is_cpu, device.capability, device.has_bf16, version)


@dataclass(frozen=True, slots=True)
class _Site:
    """Occurrences of a pattern at one statement."""

    pattern: Pattern
    candidate: Candidate
    whole: Finding
    """The price of the candidate that the occurrences come from."""
    is_whole: bool
    """Whether the site has all of that candidate's occurrences and no other's."""
    fixer: Fixer | None
    place: Place | None = None
    confirmation: Confirmation | None = None
    stale: str = ""
    """Why it has no place in the source any more."""

    @property
    def location(self) -> Location | None:
        """Where to show it: where the source confirms it, else where its time is spent; of time inside a library's
        model, where the program builds that."""
        if self.confirmation is not None:
            return self.confirmation.location
        if self.place is not None and self.place.inside is not None and self.place.inside.built is not None:
            return self.place.inside.built
        return self.place.location if self.place is not None else None

    def joined(self, other: _Site) -> _Site:
        """Both sites' occurrences; the dearer one's evidence and words."""
        first, second = (self, other) if self.whole.cost_us_per_step >= other.whole.cost_us_per_step else (other, self)
        occurrences = (*first.candidate.occurrences, *second.candidate.occurrences)
        costs = (first.candidate.cost_us_per_step, second.candidate.cost_us_per_step)
        cost = None if costs[0] is None or costs[1] is None else costs[0] + costs[1]
        candidate = replace(first.candidate, occurrences=occurrences, cost_us_per_step=cost)
        return replace(first, candidate=candidate, is_whole=False)


class _Pricer:
    """Prices candidates; the unchanged graph is replayed once."""

    def __init__(self, timeline: Timeline, options: Options, scores: WindowScores | None) -> None:
        self._timeline = timeline
        self._options = options
        self._scores = scores
        self.baseline: Replayed | None = None
        """Known once a candidate was priced."""

    def price(self, pattern: Pattern, candidate: Candidate) -> Finding:
        if self.baseline is None and not candidate.informational:
            self.baseline = replay(self._timeline.graph, Edit())
        return to_finding(self._timeline, pattern, candidate, self._options, self.baseline, self._scores)


def _sites(detected: Detected, whole: Finding, locator: FollowingLocator, confirmer: Confirmer) -> list[_Site]:
    """A candidate parted by statement.

    Occurrences of one candidate are executions of one function, so several statements of that function are several
    findings. Where they lie in several functions the pattern concerns the program as a whole: it stays one finding,
    at the first place that its source confirms.
    """
    pattern, candidate = detected.pattern, detected.candidate
    fixer = fixer_of(pattern.slug)
    site = _Site(pattern, candidate, whole, is_whole=True, fixer=fixer)
    parts = _by_statement(candidate, locator)
    placed = [(where, part) for where, part in parts if where is not None]
    stale = next((reason for _, part in parts for one in part if (reason := locator.stale(one.anchor))), "")
    if stale and not placed:
        # Another statement that holds such a fault is not the one that was measured.
        return [replace(site, stale=stale)]
    if all(where.location.how is How.OPERATOR for where, _ in placed) and not any(
        confirmer.confirm(fixer, whole, where) for where, _ in placed[:_MOST_TRIED]
    ):
        # Who knows the fault finds it better than who knows the operator only.
        found = confirmer.search(fixer, whole)
        if found is not None or not placed:
            return [replace(site, confirmation=found)]
    if len({(where.location.path, where.location.qualname) for where, _ in placed}) > 1:
        for where, _ in placed[:_MOST_TRIED]:
            if confirmation := confirmer.confirm(fixer, whole, where):
                return [replace(site, place=where, confirmation=confirmation)]
        return [replace(site, place=placed[0][0])]
    if len(parts) == 1:
        where = placed[0][0]
        return [replace(site, place=where, confirmation=confirmer.confirm(fixer, whole, where))]
    return [
        replace(
            site,
            candidate=_part(candidate, part),
            is_whole=False,
            place=where,
            confirmation=confirmer.confirm(fixer, whole, where) if where else None,
            stale="" if where else locator.stale(part[0].anchor),
        )
        for where, part in parts
    ]


def _by_statement(candidate: Candidate, locator: FollowingLocator) -> list[tuple[Place | None, list[Occurrence]]]:
    """Occurrences by statement, the statement with most of them first."""
    groups: dict[tuple[str, int], tuple[Place | None, list[Occurrence]]] = {}
    if candidate.informational:
        return []
    for occurrence in candidate.occurrences:
        where = locator.locate(occurrence.anchor)
        # What had a place is kept apart from what never had one.
        key = (locator.stale(occurrence.anchor), 0) if where is None else (where.location.path, where.location.line)
        groups.setdefault(key, (where, []))[1].append(occurrence)
    return sorted(groups.values(), key=lambda group: -len(group[1]))


def _part(candidate: Candidate, occurrences: list[Occurrence]) -> Candidate:
    cost = candidate.cost_us_per_step
    share = len(occurrences) / len(candidate.occurrences)
    return replace(candidate, occurrences=tuple(occurrences), cost_us_per_step=None if cost is None else cost * share)


def _finding(site: _Site, pricer: _Pricer, confirmer: Confirmer) -> Finding:
    """The site as it is shown."""
    confirmation = site.confirmation
    candidate = site.candidate
    if confirmation is not None and confirmation.message and confirmation.fixes:
        candidate = replace(candidate, what=confirmation.message)
    is_priced = site.is_whole and candidate is site.candidate
    finding = site.whole if is_priced else pricer.price(site.pattern, candidate)
    evidence = finding.evidence
    if site.stale:
        severity = Severity.HINT if finding.severity is Severity.HINT else Severity.INFORMATION
        return replace(finding, severity=severity, stale=site.stale)
    if confirmation is None and site.fixer is not None:
        is_cured = confirmer.is_cured(site.fixer, site.place)
        if is_cured or site.fixer.required:
            finding = replace(finding, severity=Severity.HINT)
        if is_cured:
            evidence = (*evidence, Evidence(CURED, "the source holds what fixes this", "record again", ""))
    if confirmation is not None and confirmation.is_wanted:
        finding = replace(finding, severity=Severity.HINT)
    if confirmation is not None and confirmation.message and not confirmation.fixes:
        evidence = (*evidence, Evidence("no-fix", "why no fix is offered", confirmation.message, ""))
    fixes = tuple(titled(fix, finding) for fix in confirmation.fixes) if confirmation is not None else ()
    return replace(finding, evidence=evidence, location=site.location, related=_related(site), fixes=fixes)


def _related(site: _Site) -> tuple[Related, ...]:
    related = list(site.confirmation.related) if site.confirmation is not None else []
    if site.place is not None:
        if site.place.note:
            related.insert(0, Related(site.place.note, site.place.location))
        if site.location is not None and not is_same_line(site.location, site.place.location):
            related.append(spent_in(site.place.location))
        if site.place.inside is not None:
            related += inside_library(site.place.inside, site.place.location, site.location)
        related += called_from(site.place.callers[:_MOST_CALLERS])
    return tuple(related)


def _is_shown(site: _Site, workspace: Workspace) -> bool:
    """What only the source can tell needs its word; what the source says to ignore is left out."""
    if (site.candidate.unmeasured or site.candidate.needs_source) and site.confirmation is None:
        return False
    return not _is_silenced(site, workspace)


def _is_silenced(site: _Site, workspace: Workspace) -> bool:
    """Whether a comment where the finding is shown, or where its time is spent, names it."""
    places = {location for location in (site.location, site.place and site.place.location) if location}
    return any(
        (file := workspace.file(location.path)) is not None
        and is_suppressed(file, location, site.pattern.code, site.pattern.slug)
        for location in places
    )
