"""Earlier texts of files, with where everything was in them: undoing leads back there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..analyzer.findings import Finding
from .identity import Written
from .marks import Mark, Repaired
from .merge import Seen

MOST_TEXTS = 200
MOST_TEXT = 20_000_000
"""Earlier texts of a file that undoing can lead back to: how many, and of how many characters together."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a finding was in a text that was left by an edit."""

    finding: Finding
    is_edited: bool
    is_lost: bool
    written: Written | None


@dataclass(frozen=True, slots=True)
class Past:
    """Where everything in a file was while it had one text. Undoing leads back there."""

    path: str
    text: str
    spots: Mapping[int, Spot]
    """By the finding's id."""
    marks: Mapping[tuple[str, str], Mark]
    repaired: tuple[Repaired, ...]


class Pasts:
    """The earlier texts of one file, the one left last at the end."""

    def __init__(self) -> None:
        self._kept: dict[int, Past] = {}

    def of(self, text: str) -> Past | None:
        """What was while the file had this text; None if that is not known."""
        past = self._kept.get(hash(text))
        return past if past is not None and past.text == text else None

    def keep(self, past: Past) -> None:
        """Keep what is in a text that is about to be left."""
        self._kept.pop(hash(past.text), None)
        self._kept[hash(past.text)] = past
        if len(self._kept) > MOST_TEXTS or sum(len(one.text) for one in self._kept.values()) > MOST_TEXT:
            del self._kept[next(iter(self._kept))]


def returned(seen: Seen, past: Past) -> Seen:
    """A finding as it was in a text that is there again."""
    spot = past.spots.get(seen.id)
    if spot is None:
        return seen
    there, now = spot.finding, seen.finding
    is_told_alike = [one.message for one in there.related] == [one.message for one in now.related]
    finding = replace(
        now,
        location=there.location if _path_of(there) == _path_of(now) == past.path else now.location,
        related=there.related if is_told_alike else now.related,
    )
    return replace(seen, finding=finding, is_edited=spot.is_edited, is_lost=spot.is_lost, written=spot.written)


def _path_of(finding: Finding) -> str:
    return "" if finding.location is None else finding.location.path
