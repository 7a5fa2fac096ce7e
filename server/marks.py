"""What is kept at a line besides findings."""

from __future__ import annotations

from dataclasses import dataclass

from ..analyzer.findings import Hotspot


@dataclass(frozen=True, slots=True)
class Mark:
    """The time per step of a function or module, at the line that defines it."""

    line: int
    column: int
    end_line: int
    end_column: int
    hotspot: Hotspot
    recorded_ns: int


@dataclass(frozen=True, slots=True)
class Repaired:
    """A finding whose fault is gone from the source, until a newer recording measures the place."""

    line: int
    column: int
    end_line: int
    end_column: int
    path: str
    qualname: str
    slug: str
    title: str
    saving_us_per_step: float
    recorded_ns: int
    """When the recording that showed the fault was made."""
