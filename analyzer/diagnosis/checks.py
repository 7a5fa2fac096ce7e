"""What makes a model's sentences fit to be shown: every figure in them is that of the evidence they name.

A false sentence is never mended, since a model that wrote one figure wrong may have meant another thing: a claim is
dropped and counted, a cause gives way to what the pattern's page says of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..findings import Claim, Evidence
from .answer import LONGEST_CAUSE, LONGEST_CLAIM, GivenClaim
from .dossier import Dossier
from .known import Known
from .mentions import Mention, Odd, Shape, mentions
from .plain import plain


@dataclass(frozen=True, slots=True)
class Dropped:
    """A claim that is not shown, as it was given."""

    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What is left of an answer's claims, in their order."""

    claims: tuple[Claim, ...]
    dropped: tuple[Dropped, ...]


def check_claims(claims: Iterable[GivenClaim], known: Known) -> Checked:
    """Part claims into those that may be shown and those that may not. What is shown is plain text of one line."""
    kept: list[Claim] = []
    dropped: list[Dropped] = []
    for claim in claims:
        ids = tuple(dict.fromkeys(claim.evidence))
        text, why = _read(claim.text, LONGEST_CLAIM)
        if missing := [id for id in ids if id not in known.figures]:
            why = f"there is no evidence {missing[0]!r:.40}"
        elif not ids:
            why = "it names no evidence"
        why = why or _wrong(text, known, (figure for id in ids for figure in known.figures[id]))
        if why:
            dropped.append(Dropped(claim.text, why))
        else:
            kept.append(Claim(text, ids))
    return Checked(tuple(kept), tuple(dropped))


def check_cause(cause: str, known: Known) -> str:
    """The cause as it may be shown; "" where it holds a figure that no evidence has."""
    text, why = _read(cause, LONGEST_CAUSE)
    figures = (figure for of_id in known.figures.values() for figure in of_id)
    return "" if why or _wrong(text, known, figures) else text


def meaning(pattern: str, dossier: Dossier) -> str:
    """What a pattern is, in the product's own words; "" for none."""
    return next((choice.meaning for choice in dossier.choices if choice.slug == pattern), "")


def _read(text: str, most: int) -> tuple[str, str]:
    """A sentence as plain text, and why it cannot be shown; one of them is ""."""
    if len(text) > most:
        return "", f"it is longer than {most} characters"
    read = plain(text)
    if read is None:
        return "", "it holds markup, or signs that cannot be checked"
    return read, "" if read else "it says nothing"


def _wrong(text: str, known: Known, cited: Iterable[Evidence]) -> str:
    """What is false in it, in words; "" if nothing is."""
    figures = tuple(cited)
    wrong = next((one for one in mentions(text) if not known.holds(one, figures)), None)
    return "" if wrong is None else f"{_said(wrong)} is not what the evidence says"


def _said(mention: Mention) -> str:
    if isinstance(mention, Odd):
        return f"{mention.text!r}, which cannot be read for certain,"
    return repr("x".join(map(str, mention.sizes)) if isinstance(mention, Shape) else mention.text)
