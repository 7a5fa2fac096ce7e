"""The right answer to a question, written by program from what is known and from the catalogue's words."""

from __future__ import annotations

import re
from random import Random

from torchtraceap.analyzer.diagnosis.answer import LONGEST_CAUSE, Answer, Confidence
from torchtraceap.analyzer.diagnosis.checks import check_cause
from torchtraceap.analyzer.diagnosis.dossier import NO_FIX, NO_PATTERN, Choice, Dossier
from torchtraceap.analyzer.diagnosis.known import Known
from torchtraceap.analyzer.findings import CURED, Safety, Stage

from .claims import ascii_text, claims_for, spoken, telling_rows
from .pages import page_of
from .questions import Question

_HEALTHY = (
    "Nothing here takes longer than it must.",
    "This part does its work and shows no known fault.",
    "The time goes into work that the model needs.",
    "Neither the rules nor the detector see a fault that matters.",
    "This is ordinary work of the step.",
)
_CHEAP = (
    "What was found costs too little to matter.",
    "It is there, but it is not costly here.",
    "The step would hardly be shorter without it.",
)
_CURED = "The source holds what fixes this: the recording is older than the fix."
_PLAIN = "What the evidence shows is this pattern, and it costs time in every step."
_SURE, _LIKELY = 0.8, 0.4
_AN_ABBREVIATION = re.compile(r"`|[A-Z][A-Z]|Python\b|PyTorch\b")


def right_answer(question: Question, shown: frozenset[str], rng: Random) -> Answer:
    """The answer to learn. `shown` has the ids that the prompt has room for. Raises ValueError if what is right is not
    among the choices."""
    dossier = question.dossier
    if not question.is_answerable:
        raise ValueError(f"none of {', '.join(question.right)} is among the choices")
    known = {choice.slug: choice for choice in dossier.choices}
    pattern = next((known[slug] for slug in question.right if slug in known), None)
    return Answer(
        pattern=pattern.slug if pattern else NO_PATTERN,
        stage=(pattern.stage if pattern else Stage.IMPLEMENTATION).value,
        claims=claims_for(dossier, shown, pattern, rng),
        cause=_cause(dossier, pattern, rng),
        fix=_fix(dossier, pattern),
        confidence=_confidence(dossier, pattern),
    )


def _cause(dossier: Dossier, pattern: Choice | None, rng: Random) -> str:
    if pattern is None:
        return rng.choice(_CHEAP if dossier.slug and dossier.saving_pct < 1.0 else _HEALTHY)
    page = page_of(pattern.slug)
    head = page.head
    if (where := _where(dossier, rng)) and rng.random() < 0.5:
        head = f"In {where}, {_lowered(head)}"
    more = rng.choice(page.why) if page.why and rng.random() < 0.6 else ""
    if any(one.id == CURED for one in dossier.evidence):
        more = _CURED
    known = Known(dossier)
    texts = map(ascii_text, (f"{head} {more}".strip(), head, page.head, f"{pattern.meaning}."))
    # Words such as "three passes" are figures to the check, and none of the trace's.
    return next((text for text in texts if len(text) <= LONGEST_CAUSE and check_cause(text, known)), _PLAIN)


def _where(dossier: Dossier, rng: Random) -> str:
    """A place as the trace or the source names it; "" if there is none."""
    names = [spoken(row.name) for row in sorted(telling_rows(dossier), key=lambda row: -row.share_pct)[:3]]
    if dossier.source is not None and dossier.source.qualname != "<module>":
        names = [f"{dossier.source.qualname} ({dossier.source.path})"] * 2 + names
    return rng.choice(names) if names else ""


def _lowered(sentence: str) -> str:
    return sentence if _AN_ABBREVIATION.match(sentence) else sentence[:1].lower() + sentence[1:]


def _fix(dossier: Dossier, pattern: Choice | None) -> str:
    """The pattern's own fix, a safe one if there is any."""
    if pattern is None:
        return NO_FIX
    its = [fix for fix in dossier.fixes if fix.id.partition("/")[0] == pattern.slug]
    its.sort(key=lambda fix: fix.safety is not Safety.SAFE)
    return its[0].id if its else NO_FIX


def _confidence(dossier: Dossier, pattern: Choice | None) -> Confidence:
    """By how clear the evidence is: rule and detector agree, one of them is sure, or neither is."""
    if pattern is None:
        bad = dossier.bad if dossier.bad is not None else 0.5
        return "high" if bad < 0.1 else "medium" if bad < 0.4 else "low"
    others = max((choice.by_detector or 0.0 for choice in dossier.choices if choice != pattern), default=0.0)
    detector = pattern.by_detector or 0.0
    is_cured = any(one.id == CURED for one in dossier.evidence)
    if is_cured or max(pattern.by_rule, detector) < _LIKELY:
        return "low"
    agree = pattern.by_rule >= _LIKELY and detector >= _LIKELY
    is_clear = (agree or max(pattern.by_rule, detector) >= _SURE) and detector >= others
    return "high" if is_clear else "medium"
