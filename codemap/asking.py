"""The places at which a finding's fixer was asked, as its related places tell them: they move with every edit."""

from __future__ import annotations

from collections.abc import Sequence

from ..analyzer.findings import Finding, Location, Related
from .statements import Inside

_CALLED_FROM = "called from "
_SPENT_IN = "the time is spent in "
_USED_IN = "used in "


def called_from(callers: Sequence[Location]) -> tuple[Related, ...]:
    """The call statements above a finding's place, innermost first."""
    return tuple(Related(_CALLED_FROM + caller.qualname, caller) for caller in callers)


def spent_in(place: Location) -> Related:
    """Where the time is spent of a finding that is shown elsewhere."""
    return Related(_SPENT_IN + place.qualname, place)


def inside_library(inside: Inside, called: Location, shown: Location | None) -> tuple[Related, ...]:
    """What is inside a library of a finding whose model was called at one place and that is shown at another."""
    found = (Related(f"the time is spent inside {inside.what}", called),)
    if inside.built is None or (shown is not None and is_same_line(inside.built, shown)):
        return found
    return (*found, Related("the library's model is built here", inside.built))


def used_in(place: Location) -> Related:
    """Where a search came upon a finding that is shown elsewhere."""
    return Related(_USED_IN + place.qualname, place)


def callers_of(finding: Finding) -> tuple[Location, ...]:
    """What `called_from` was given."""
    return tuple(one.location for one in finding.related if one.message.startswith(_CALLED_FROM))


def asked_at(finding: Finding) -> tuple[Location, ...]:
    """Where the fixer was asked, if not at the finding's own place."""
    return tuple(one.location for one in finding.related if one.message.startswith((_SPENT_IN, _USED_IN)))


def is_same_line(one: Location, other: Location) -> bool:
    """Whether two places begin on one line of one file."""
    return (one.path, one.line) == (other.path, other.line)
