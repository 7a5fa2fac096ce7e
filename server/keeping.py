"""Findings after an edit: moved with the text, hidden where another statement stands in their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..analyzer.findings import Location, Report
from .documents import Replacement, moved, touches
from .following import Following
from .identity import Written, found_again, is_edited, unchanged, without_doubles
from .marks import Mark
from .merge import Seen
from .past import Spot
from .places import moved_finding, speaks_of


def edited(seen: Seen, path: str, edit: Replacement) -> Seen:
    """A finding after an edit of the file at `path`."""
    if not speaks_of(seen.finding, path):
        return seen
    where = seen.finding.location
    is_edited = seen.is_edited or (where is not None and where.path == path and touches(where, edit))
    finding = moved_finding(seen.finding, path, edit)
    return (
        seen
        if finding is seen.finding and is_edited == seen.is_edited
        else replace(seen, finding=finding, is_edited=is_edited)
    )


def followed(
    seen: Seen,
    path: str,
    spot: Spot | None,
    following: Following,
    lines: Sequence[str],
    written_at: Callable[[Location], Written | None],
) -> Seen:
    """A finding after the file at `path` became another text, of `lines`, in one go; `spot` is where it was before."""
    where = None if spot is None else spot.finding.location
    if spot is None or where is None or where.path != path or spot.is_lost or is_empty(where):
        return seen
    known = seen.written
    now = following.location(where)
    if now is None:
        left = known if known is None else without_doubles(known, lines)
        return replace(seen, is_edited=True, is_lost=True, written=left)
    has_changed = seen.is_edited or known is None or unchanged(known, lines, now) is None
    found = replace(seen.finding, location=now)
    return replace(seen, finding=found, written=written_at(now), is_edited=has_changed)


def checked(seen: Seen, path: str, lines: tuple[str, ...]) -> Seen:
    """Whether a finding is still on its own statement; back on it, where its very lines stand elsewhere now."""
    where = seen.finding.location
    if seen.written is None or where is None or where.path != path:
        return seen
    # Of equal statements a lost one may stand on another.
    may_be_there = not is_empty(where) and (seen.written.is_single or not seen.is_lost)
    exact = unchanged(seen.written, lines, where) if may_be_there else None
    exact = exact or found_again(seen.written, lines, where)
    if exact is None:
        is_lost = seen.is_lost or is_empty(where) or not is_edited(seen.written, lines, where)
        return seen if is_lost == seen.is_lost else replace(seen, is_lost=is_lost)
    if exact == where:
        return replace(seen, is_lost=False) if seen.is_lost else seen
    return replace(seen, finding=replace(seen.finding, location=exact), is_edited=True, is_lost=False)


def moved_report(report: Report, path: str, edit: Replacement) -> Report:
    """A report after an edit of the file at `path`."""
    findings = tuple(moved_finding(finding, path, edit) for finding in report.findings)
    hotspots = tuple(
        replace(spot, line=moved(Mark(spot.line, 1, spot.line, 2, spot, 0), edit).line) if spot.path == path else spot
        for spot in report.hotspots
    )
    return replace(report, findings=findings, hotspots=hotspots)


def is_empty(where: Location) -> bool:
    """Whether all of a place was deleted."""
    return (where.line, where.column) == (where.end_line, where.end_column)
