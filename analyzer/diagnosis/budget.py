"""What a prompt does without when it may not be longer.

In this order, each step only where those before it do not do: layers, those that take least of the step first; rows of
the call tree, likewise, so that the dearest path stays; lines of source, those furthest from the finding's first;
evidence, the last named first. All go down to a few at first, and further only when that was not enough. The headline,
the choices and the fixes are never cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from .dossier import Dossier, Excerpt


@dataclass(frozen=True, slots=True)
class _Least:
    """Down to which numbers a pass cuts."""

    layers: int
    rows: int
    lines: int
    """On each side of the finding's."""
    evidence: int


_PASSES = (_Least(3, 7, 4, 6), _Least(0, 4, 1, 4), _Least(0, 0, 0, 2))


def smaller(dossier: Dossier) -> Iterator[Dossier]:
    """The dossier, and smaller and smaller ones."""
    yield dossier
    for least in _PASSES:
        while len(dossier.layers) > least.layers:
            dossier = replace(dossier, layers=_without_cheapest(dossier.layers))
            yield dossier
        while len(dossier.tree) > least.rows:
            dossier = replace(dossier, tree=_without_cheapest(dossier.tree))
            yield dossier
        while dossier.source is not None and (side := _longer_side(dossier.source)) > least.lines:
            dossier = replace(dossier, source=_within(dossier.source, max(least.lines, min(side - 1, side * 3 // 4))))
            yield dossier
        while len(dossier.evidence) > least.evidence:
            dossier = replace(dossier, evidence=dossier.evidence[:-1])
            yield dossier


def left_out(whole: Dossier, shown: Dossier) -> tuple[str, ...]:
    """What the smaller one lacks, in words."""
    counts = (
        ("layers", len(whole.layers), len(shown.layers)),
        ("rows of the call tree", len(whole.tree), len(shown.tree)),
        ("lines of source", _length(whole.source), _length(shown.source)),
        ("evidence items", len(whole.evidence), len(shown.evidence)),
    )
    return tuple(f"{had - has} of {had} {what}" for what, had, has in counts if has < had)


def _without_cheapest(rows: tuple) -> tuple:
    """Rows without the one of the least share. Nothing takes more than what it is part of, and of equal ones the
    deeper goes first: no row loses the one above it."""
    at = min(range(len(rows)), key=lambda i: (rows[i].share_pct or 0.0, -rows[i].depth, -i))
    return rows[:at] + rows[at + 1 :]


def _longer_side(source: Excerpt) -> int:
    marked = source.marked_line - source.first_line
    return max(marked, len(source.lines) - 1 - marked)


def _within(source: Excerpt, distance: int) -> Excerpt:
    """Its lines no further than `distance` from the marked one."""
    marked = source.marked_line - source.first_line
    start = max(marked - distance, 0)
    return replace(source, first_line=source.first_line + start, lines=source.lines[start : marked + distance + 1])


def _length(source: Excerpt | None) -> int:
    return len(source.lines) if source is not None else 0
