"""Moving findings with the text they speak of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..analyzer.findings import Finding, Location
from .documents import Replacement, moved


def moved_finding(finding: Finding, path: str, edit: Replacement) -> Finding:
    """`finding` after an edit of the file at `path`: its place and the related ones."""
    location = _moved(finding.location, path, edit)
    related = tuple(
        replace(other, location=where) if (where := _moved(other.location, path, edit)) is not other.location else other
        for other in finding.related
    )
    if location is finding.location and related == finding.related:
        return finding
    return replace(finding, location=location, related=related)


def speaks_of(finding: Finding, path: str) -> bool:
    """Whether the finding's place or a related one is in the file."""
    if finding.location is not None and finding.location.path == path:
        return True
    return any(other.location.path == path for other in finding.related)


def paths_of(finding: Finding) -> tuple[str, ...]:
    """The files that the finding's place and the related ones are in."""
    related = [other.location.path for other in finding.related]
    return tuple(dict.fromkeys(related if finding.location is None else [finding.location.path, *related]))


def trimmed(place: Location, lines: Sequence[str]) -> Location:
    """`place` without white space at its ends (edits by whole lines leave some). `lines[0]` is line 1."""
    line, column, end_line, end_column = place.line, place.column, place.end_line, place.end_column
    while (
        (line, column) < (end_line, end_column)
        and end_line > 1
        and not _text(lines, end_line)[: end_column - 1].strip()
    ):
        end_line -= 1
        end_column = len(_text(lines, end_line)) + 1
    while (line, column) < (end_line, end_column) and not _text(lines, line)[column - 1 :].strip():
        line, column = line + 1, 1
    rest = _text(lines, line)[column - 1 :]
    column += len(rest) - len(rest.lstrip())
    end_column = min(end_column, len(_text(lines, end_line).rstrip()) + 1)
    return replace(place, line=line, column=column, end_line=end_line, end_column=max(end_column, 1))


def _text(lines: Sequence[str], line: int) -> str:
    return lines[line - 1].rstrip("\r\n") if 0 < line <= len(lines) else ""


def _moved(place: Location | None, path: str, edit: Replacement) -> Location | None:
    return place if place is None or place.path != path else moved(place, edit)
