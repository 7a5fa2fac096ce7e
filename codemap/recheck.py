"""Whether the source still holds a finding's fault: what the editor asks after an edit, without the trace."""

from __future__ import annotations

from ..analyzer.findings import Finding
from .anchors import Anchor, find_anchor
from .fixes.base import Case, Confirmation, DeviceFacts
from .fixes.registry import fixers
from .suppress import is_suppressed
from .workspace import Workspace

CALLED_FROM = "called from"
"""How the related places that are callers begin."""


def recheck(
    finding: Finding, workspace: Workspace, device: DeviceFacts, anchor: Anchor | None = None
) -> Confirmation | None:
    """What the source says of the finding now; None when it no longer holds the fault, or asks to be silent about it.

    `finding.location` is where the editor shifted it to. With an `anchor` the statement is looked for where that
    place does not hold the fault; it also answers for patterns that no fixer can confirm.
    """
    location = finding.location
    file = workspace.file(location.path) if location is not None else None
    if location is None or file is None:
        return None
    moved = find_anchor(file, anchor, location) if anchor is not None else None
    places = [location] if moved is None or moved.line == location.line else [location, moved]
    places = [place for place in places if not is_suppressed(file, place, finding.code, finding.slug)]
    fixer = fixers().get(finding.slug)
    if fixer is None:
        # Nothing can be confirmed: the statement itself is the evidence, as far as it was anchored.
        kept = moved if anchor is not None else location
        is_heard = kept is not None and any(place.line == kept.line for place in places)
        return Confirmation(kept) if kept is not None and is_heard else None
    callers = tuple(r.location for r in finding.related if r.message.startswith(CALLED_FROM))
    confirmed = (fixer.confirm(Case(finding, place, callers, workspace, device)) for place in places)
    return next((answer for answer in confirmed if answer is not None), None)
