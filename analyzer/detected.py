"""What the rules found, before it is priced, and what a user may set of the search."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from .detector.model import WindowScores
from .patterns.base import Candidate, Pattern
from .timeline.family import Family
from .timeline.model import Timeline

AUTO = "auto"


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
    failures: tuple[str, ...] = ()
    """Rules that raised an exception, and why there is no detector where one was wanted, in words."""
    family: Family | None = None
    """The family that the model was taken for."""
    windows: WindowScores | None = None
    """What the detector says of each window; None where none was asked, or it failed."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may set. `min_saving_pct` parts information from hint; `select` and `ignore` name slugs or codes."""

    min_saving_pct: float = 1.0
    select: Collection[str] = ()
    ignore: Collection[str] = ()
    model_type: str = AUTO
    """A `Family` by its value, or "auto": recognised in the trace, else in the source."""
    with_feature_maps: bool = False
    """Whether the report lists every layer's feature map."""
    with_windows: bool = False
    """Whether the report lists what the detector says of each window."""


DEFAULTS = Options()
