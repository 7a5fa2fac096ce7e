"""What a language model answers, as it comes, before anything is checked."""

from __future__ import annotations

from typing import Literal

import msgspec

Confidence = Literal["low", "medium", "high"]

MOST_CLAIMS = 3
LONGEST_CLAIM = 160
LONGEST_CAUSE = 240
LONGEST_EDIT = 4000


class GivenClaim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One sentence about the evidence, with the ids of what it rests on."""

    text: str
    evidence: tuple[str, ...]


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields in the order in which they are written: what is decided first comes first."""

    pattern: str
    """A slug among the dossier's choices, or "none"."""
    stage: Literal["architecture", "implementation", "hardware"]
    claims: tuple[GivenClaim, ...]
    cause: str
    fix: str
    """An id among the dossier's fixes, "edit" for the edit below, or "none"."""
    edit: str = ""
    """The whole function as it should be; "" for none."""
    confidence: Confidence
