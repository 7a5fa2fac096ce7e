"""Several recordings of one project become one set of findings: at each place the newest recording decides."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..analyzer.diagnosis.dossier import Dossier
from ..analyzer.findings import Finding, Report
from ..analyzer.order import in_order_of_work
from ..codemap.anchors import Anchor
from ..codemap.asking import callers_of
from .identity import Written

Place = tuple[str, str]
"""A path and a qualified name."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the source said of a finding when it was placed."""

    anchor: Anchor | None = None
    is_confirmed: bool = False
    written: Written | None = None
    dossier: Dossier | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """A finding of the newest recording that shows it, and all recordings that do."""

    id: int
    finding: Finding
    trace: str
    recorded_ns: int
    traces: frozenset[str]
    anchor: Anchor | None = None
    is_confirmed: bool = False
    """The source was seen to hold the fault, so that looking again can tell whether it still does."""
    is_edited: bool = False
    """Its lines were changed since it was last confirmed in the source."""
    written: Written | None = None
    """What its lines were when its place was known to be right; None if that is not known."""
    is_lost: bool = False
    """Another statement stands at its place: it is not shown."""
    dossier: Dossier | None = None
    """What a language model is told of it; None where it is not to be asked."""
    unexplained: str = ""
    """Why a language model that was asked has not explained it; "" if it has, or was not."""


class Merge:
    """Findings gathered from recordings, in any order."""

    def __init__(self) -> None:
        self._seen: list[Seen] = []
        self._measured_ns: dict[Place, int] = {}
        self._newest_ns = -1
        self._ids = itertools.count()

    @property
    def seen(self) -> tuple[Seen, ...]:
        """What is to be shown, in the order in which to do it."""
        return tuple(sorted(self._seen, key=lambda seen: in_order_of_work(seen.finding)))

    def add(self, report: Report, trace: str, recorded_ns: int, held: Sequence[Held] = ()) -> None:
        """Take in one recording. A place that it measured belongs to it unless a newer recording measured it too.

        `held` says of each finding what the source said. Findings without a place speak of the recording as a whole,
        so only the newest recording's count.
        """
        self.remove(trace)
        known = {_identity(seen.finding): index for index, seen in enumerate(self._seen)}
        matched: set[int] = set()
        added: list[Seen] = []
        for finding, source in itertools.zip_longest(report.findings, held, fillvalue=Held()):
            assert isinstance(finding, Finding) and isinstance(source, Held)
            fresh = Seen(
                next(self._ids), finding, trace, recorded_ns, frozenset({trace}),
                source.anchor, source.is_confirmed, written=source.written, dossier=source.dossier,
            )  # fmt: skip
            index = known.get(_identity(finding))
            if index is not None:
                matched.add(index)
                self._seen[index] = _join(self._seen[index], fresh)
            elif self._measured_at(finding) <= recorded_ns:
                added.append(fresh)
        measured = _places(report)
        self._seen = [
            seen
            for index, seen in enumerate(self._seen)
            if index in matched or seen.recorded_ns > recorded_ns or not _is_measured(seen.finding, measured)
        ] + added
        for place in measured:
            self._measured_ns[place] = max(recorded_ns, self._measured_ns.get(place, -1))
        self._newest_ns = max(recorded_ns, self._newest_ns)

    def remove(self, trace: str) -> None:
        """Forget a recording; what only it showed goes."""
        kept = [replace(seen, traces=seen.traces - {trace}) for seen in self._seen]
        self._seen = [seen for seen in kept if seen.traces]

    def update(self, change: Callable[[Seen], Seen | None]) -> None:
        """Replace each entry by what `change` makes of it; None drops it."""
        self._seen = [new for old in self._seen if (new := change(old)) is not None]

    def _measured_at(self, finding: Finding) -> int:
        place = _place(finding)
        return self._newest_ns if place is None else self._measured_ns.get(place, -1)


def merge_reports(newest_first: Sequence[Report]) -> Report:
    """One report of several. Summary and hotspots are the newest's; a finding that recurs says so in its message."""
    if len(newest_first) == 1:
        return newest_first[0]
    merge = Merge()
    for age, report in enumerate(newest_first):
        merge.add(report, str(age), -age)
    findings = tuple(
        replace(seen.finding, message=recurring(seen.finding.message, len(seen.traces), len(newest_first)))
        for seen in merge.seen
    )
    known = {(spot.path, spot.qualname) for spot in newest_first[0].hotspots}
    older = [spot for report in newest_first[1:] for spot in report.hotspots]
    rest = {(spot.path, spot.qualname): spot for spot in reversed(older) if (spot.path, spot.qualname) not in known}
    return replace(newest_first[0], findings=findings, hotspots=(*newest_first[0].hotspots, *rest.values()))


def recurring(message: str, times: int, recordings: int) -> str:
    """`message`, with how many of the recordings show the finding if several do."""
    return message if times < 2 else f"{message}; seen in {times} of {recordings} recordings"


def _join(old: Seen, fresh: Seen) -> Seen:
    traces = old.traces | fresh.traces
    newest = old if fresh.recorded_ns < old.recorded_ns else fresh
    return replace(newest, id=old.id, traces=traces)


def _identity(finding: Finding) -> tuple[str, str, int, int]:
    where = finding.location
    return (finding.slug, "", 0, 0) if where is None else (finding.slug, where.path, where.line, where.column)


def _place(finding: Finding) -> Place | None:
    return None if finding.location is None else (finding.location.path, finding.location.qualname)


def _places(report: Report) -> frozenset[Place]:
    """The functions that a recording ran: its hotspots, and those that hold its findings or led there."""
    measured = {(spot.path, spot.qualname) for spot in report.hotspots}
    measured |= {place for finding in report.findings if (place := _place(finding))}
    callers = (caller for finding in report.findings for caller in callers_of(finding))
    return frozenset(measured | {(caller.path, caller.qualname) for caller in callers})


def _is_measured(finding: Finding, measured: frozenset[Place]) -> bool:
    place = _place(finding)
    return place is None or place in measured
