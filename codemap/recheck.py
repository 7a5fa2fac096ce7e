"""Whether the source still holds a finding's fault: what the editor asks after an edit, without the trace."""

from __future__ import annotations

from dataclasses import replace

from ..analyzer.findings import Finding, Location
from .anchors import Anchor, find_anchor
from .asking import asked_at, callers_of
from .fixes.base import Case, Confirmation, DeviceFacts, Fixer
from .fixes.registry import fixer_of
from .suppress import is_suppressed
from .workspace import Workspace


def recheck(
    finding: Finding, workspace: Workspace, device: DeviceFacts, anchor: Anchor | None = None
) -> Confirmation | None:
    """What the source says of the finding now; None when it no longer holds the fault, or asks to be silent about it.

    `finding.location` is where the editor shifted it to, and so are the related places: a fault that is shown where
    an object is made was confirmed where its time is spent, so that is where its fixer is asked. With an `anchor` the
    statement is looked for where that place does not hold the fault; it also answers for patterns that no fixer can
    confirm.
    """
    location = finding.location
    file = workspace.file(location.path) if location is not None else None
    if location is None or file is None:
        return None
    moved = find_anchor(file, anchor, location) if anchor is not None else None
    places = [location] if moved is None or moved.line == location.line else [location, moved]
    places = [place for place in places if not is_suppressed(file, place, finding.code, finding.slug)]
    fixer = fixer_of(finding.slug)
    if fixer is None:
        # Nothing can be confirmed: the statement itself is the evidence, as far as it was anchored.
        kept = moved if anchor is not None else location
        is_heard = kept is not None and any(place.line == kept.line for place in places)
        return Confirmation(kept) if kept is not None and is_heard else None
    return _confirmed(fixer, finding, places, workspace, device)


def _confirmed(
    fixer: Fixer, finding: Finding, places: list[Location], workspace: Workspace, device: DeviceFacts
) -> Confirmation | None:
    """The fixer's answer at the first of `places` that holds the fault, asked there and where it was asked first."""
    callers = callers_of(finding)
    for place in places:
        if answer := fixer.confirm(Case(replace(finding, location=place), place, callers, workspace, device)):
            return answer
    for asked in asked_at(finding) if places else ():
        answer = fixer.confirm(Case(replace(finding, location=asked), asked, callers, workspace, device))
        if answer is not None and any(_is_at(answer.location, place) for place in places):
            return answer
    return None


def _is_at(found: Location, place: Location) -> bool:
    """Whether what was found is the statement at `place`, and not the same fault in another one."""
    return found.path == place.path and found.line <= place.end_line and place.line <= found.end_line
