"""Places in a text that became another in one go: reverted, reformatted, checked out, written by another program.

A line diff takes what stands in the same place for the same. Here statements are looked for by what they say.
"""

from __future__ import annotations

from dataclasses import replace

from ..analyzer.findings import Location
from ..codemap.drift_match import Matching
from ..codemap.drift_units import Units, units_of
from ..codemap.source import SourceFile, parse_source
from ..codemap.statements import location_of

MOST_CHARACTERS = 400_000
"""Of larger texts the editor would have to wait."""


class Following:
    """What became of the places of one file between two texts."""

    def __init__(self, old: SourceFile, new: SourceFile) -> None:
        self._old = old
        self._new = new
        self._units: Units = units_of(old)
        self._matching = Matching(self._units, units_of(new))

    def location(self, place: Location) -> Location | None:
        """Where the statement at a place is now; None if it is gone or cannot be told. A place inside a statement that
        was not edited stays what it was inside it."""
        unit = self._units.at(place.line, place.column)
        match = self._matching.of(unit) if unit is not None else None
        if unit is None or match is None:
            return None
        is_own = unit.scope == match.unit.scope and not unit.defines
        qualname = place.qualname if is_own else match.unit.defines or match.unit.scope
        now = location_of(self._new, match.unit.node, qualname)
        before = location_of(self._old, unit.node, place.qualname)
        rows, columns = now.line - before.line, now.column - before.column
        own, other = _text(self._old, before), _text(self._new, now)
        if own == other and before.line <= place.line and place.end_line <= before.end_line:
            now = replace(
                now,
                line=place.line + rows,
                column=place.column + (columns if place.line == before.line else 0),
                end_line=place.end_line + rows,
                end_column=place.end_column + (columns if place.end_line == before.line else 0),
            )
        return replace(now, how=place.how, confidence=place.confidence, grain=place.grain)


def follow(path: str, old: str, new: str) -> Following | None:
    """What became of the places of a file; None where one of the texts is no Python, or too large."""
    if max(len(old), len(new)) > MOST_CHARACTERS:
        return None
    files = parse_source(path, old), parse_source(path, new)
    return None if files[0].tree is None or files[1].tree is None else Following(*files)


def _text(file: SourceFile, place: Location) -> list[str]:
    """The lines of a statement, the first from its beginning on, the last to its end."""
    lines = list(file.lines[place.line - 1 : place.end_line])
    lines[-1] = lines[-1][: place.end_column - 1]
    lines[0] = lines[0][place.column - 1 :]
    return lines
