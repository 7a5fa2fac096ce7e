"""`analyze(trace) -> Analysis` is the whole analyzer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from .patterns.base import Candidate, Pattern
from .timeline.model import Timeline


@dataclass(frozen=True, slots=True)
class Detected:
    """A candidate with the pattern that found it."""

    pattern: Pattern
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Analysis:
    """A trace's timeline and what the rules found in it; `assess.to_finding` prices each by replay."""

    timeline: Timeline
    detected: tuple[Detected, ...]


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may set. `min_saving_pct` parts information from hint; `select` and `ignore` name slugs or codes."""

    min_saving_pct: float = 1.0
    select: Collection[str] = ()
    ignore: Collection[str] = ()
