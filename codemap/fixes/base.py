"""What a fixer is. A module of this folder that defines `FIXER: Fixer` belongs to the pattern of the same slug."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...analyzer.findings import Finding, Fix, Location, Related
from ..workspace import Workspace


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What a fixer may need to know of the recording."""

    is_cpu: bool = False
    capability: tuple[int, int] = (0, 0)
    has_bf16: bool = False
    torch_version: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """A finding at the place that `locate` found (or that the editor shifted it to), ready to be confirmed.

    `finding.location` is the statement; `callers` are the call statements above it, innermost first.
    """

    finding: Finding
    location: Location
    callers: tuple[Location, ...]
    workspace: Workspace
    device: DeviceFacts


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The fault is in the source. `location` may differ from the case's: the line to change is the constructor of
    the loader, not the loop that waits for it."""

    location: Location
    fixes: tuple[Fix, ...] = ()
    related: tuple[Related, ...] = ()
    message: str = ""
    """Replaces the finding's title clause when the source lets us say it better; "" keeps it."""
    is_wanted: bool = False
    """The source needs what the finding would do away with: it is no more than a hint."""


@dataclass(frozen=True, slots=True)
class Cure:
    """What a fixed source holds. Where a place does not hold the fault but its cure, the recording is older than the
    fix, and the finding is no more than a hint."""

    words: re.Pattern[str]
    is_elsewhere: bool = False
    """The cure stands where something is made (a loader, an optimizer), not in the function that spends the time."""


@dataclass(frozen=True, slots=True)
class Fixer:
    """`confirm` answers None when the source at the place does not hold the fault (any more, or at all).

    It is pure: the same text gives the same answer, and the answer to the fixed text is None (idempotence).
    """

    slug: str
    confirm: Callable[[Case], Confirmation | None]
    search: Callable[[Finding, Workspace, DeviceFacts], Sequence[Confirmation]] | None = None
    """All statements of the workspace that hold the fault, most likely first: for traces that name no line. How many
    there are says how sure the first one is; the confidence of each `location` is left for the caller to set."""
    required: bool = False
    """True when an unconfirmed finding must not be shown at information or above (the source decides)."""
    cure: Cure | None = None
    """What the source holds once the fault is fixed."""
