"""What the first stage alone would answer: its likeliest choice, or none."""

from __future__ import annotations

from torchtraceap.analyzer.assess import LIKELY
from torchtraceap.analyzer.diagnosis.dossier import NO_FIX, NO_PATTERN, Dossier


def likeliest(dossier: Dossier, threshold: float) -> str:
    """The first choice; "none" where P(bad) is below the detector's threshold and no rule has a likely finding."""
    is_found = any(choice.by_rule >= LIKELY for choice in dossier.choices)
    is_bad = dossier.bad is not None and dossier.bad >= threshold
    return dossier.choices[0].slug if dossier.choices and (is_found or is_bad) else NO_PATTERN


def fix_of(dossier: Dossier, pattern: str) -> str:
    """The first offered fix of a pattern, as the code action list has them."""
    return next((fix.id for fix in dossier.fixes if fix.id.partition("/")[0] == pattern), NO_FIX)
