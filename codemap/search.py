"""Looking a whole workspace over for a fault whose line the trace doesn't name."""

from __future__ import annotations

from dataclasses import replace

from ..analyzer.findings import Finding, How, Related
from .fixes.base import Confirmation, DeviceFacts, Fixer
from .recorded import RecordedFiles

_ONE_PLACE = 0.6
"""Confidence in a statement that is the only one of the workspace to hold the fault."""
LEAST_CONFIDENCE = 0.2
"""Below it no line is named: more than three statements hold the fault."""


def search(fixer: Fixer, finding: Finding, files: RecordedFiles, device: DeviceFacts) -> Confirmation | None:
    """The likeliest statement that holds the finding's fault, with how sure that is; None where nothing does, or
    where too many statements do."""
    found = fixer.search(finding, files, device) if fixer.search is not None else ()
    if not found:
        return None
    first, *others = found
    confidence = round(_ONE_PLACE / len(found), 3)
    if confidence < LEAST_CONFIDENCE:
        return None
    location = replace(first.location, how=How.OPERATOR, confidence=confidence)
    could_be = tuple(Related("could also be here", other.location) for other in others)
    return replace(first, location=location, related=(*first.related, *could_be))
