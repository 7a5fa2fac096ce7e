"""What a language model says of a finding, in the words in which it is shown: how far it holds, and what it rests on.

Its sentences are its own, and may be anything: whoever shows them makes them safe for where they are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..diagnosis.dossier import NO_PATTERN
from ..findings import Diagnosis, Evidence, Finding, Verdict


@dataclass(frozen=True, slots=True)
class SaidClaim:
    """One claim with the figures that it rests on."""

    text: str
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """A diagnosis as a person reads it."""

    standing: str
    """Whether it is confirmed, by how many answers of which model."""
    cause: str
    claims: tuple[SaidClaim, ...]
    remarks: tuple[str, ...]
    """What it recommends, and what was left out of it or kept from it."""


def said(finding: Finding, diagnosis: Diagnosis) -> Said:
    """Everything that is told of a diagnosis of a finding."""
    known = {item.id: item for item in (*finding.evidence, *diagnosis.evidence)}
    claims = tuple(
        SaidClaim(claim.text, tuple(known[id] for id in claim.evidence if id in known)) for claim in diagnosis.claims
    )
    return Said(standing(finding.slug, diagnosis), diagnosis.cause, claims, tuple(_remarks(finding, diagnosis)))


def cause_line(slug: str, diagnosis: Diagnosis) -> str:
    """The cause in one line, for beneath the finding's message."""
    other = _other(slug, diagnosis)
    if diagnosis.verdict is Verdict.DISAGREES:
        return f"{diagnosis.model} disagrees, {other}: {diagnosis.cause}"
    unsure = ", unconfirmed" if diagnosis.verdict is Verdict.UNCONFIRMED else ""
    return f"cause{unsure}{', ' * bool(other)}{other}: {diagnosis.cause} ({diagnosis.model})"


def standing(slug: str, diagnosis: Diagnosis) -> str:
    """How far a diagnosis holds: "confirmed: 3 of 3 answers of CodeLlama-7b, NF4 agree, and the analysis with them"."""
    agreeing = round(diagnosis.agreement * diagnosis.answers)
    answers = f"{agreeing} of {diagnosis.answers} answers of {diagnosis.model} agree"
    other = _other(slug, diagnosis)
    if diagnosis.verdict is Verdict.CONFIRMED:
        return f"confirmed: {answers}, and the analysis with them"
    if diagnosis.verdict is Verdict.DISAGREES:
        return f"disagrees with the analysis, {other}: {answers}"
    once = f"{diagnosis.model} was asked once only" if diagnosis.answers < 2 else answers
    return f"unconfirmed{', ' * bool(other)}{other}: {once}"


def _other(slug: str, diagnosis: Diagnosis) -> str:
    """What the model sees instead; "" where it sees the same as the first stage."""
    if diagnosis.pattern in (slug, ""):
        return ""
    return "it sees no fault here" if diagnosis.pattern == NO_PATTERN else f"it takes this for {diagnosis.pattern}"


def _remarks(finding: Finding, diagnosis: Diagnosis) -> Iterator[str]:
    fix = next((one for one in finding.fixes if one.id == diagnosis.fix), None)
    if fix is not None:
        yield f"it recommends: {fix.title}"
    if diagnosis.edit is not None:
        yield "it proposes an edit of its own, which may change results"
    if diagnosis.edit_refused:
        yield f"an edit that it proposed is left out: {diagnosis.edit_refused}"
    if diagnosis.claims_dropped:
        was = "claim is" if diagnosis.claims_dropped == 1 else "claims are"
        yield f"{diagnosis.claims_dropped} {was} left out, with a figure that is not that of the evidence"
    if diagnosis.cut:
        yield f"did not fit into its prompt: {', '.join(diagnosis.cut)}"
