"""Answers verbatim, good and bad, for people to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from torchtraceap.analyzer.diagnosis.dossier import NO_PATTERN
from torchtraceap.analyzer.findings import Diagnosis

from .examined import Shown

EACH = 5
_SEED = 0
_HEAD = """\
# Ten answers of each backend, as they came

Drawn at random from the exam: five whose pattern is right, five whose pattern is wrong. What is shown has been through
the check of claims; figures are in results.json. Written by `python -m bench.diagnosis`.
"""


def write_report(path: Path, shown: Sequence[Shown]) -> None:
    """Ten answers of each backend."""
    lines = [_HEAD]
    for backend in dict.fromkeys(one.backend for one in shown):
        its = [one for one in shown if one.backend == backend]
        for title, chosen in (("right", [one for one in its if one.scored.is_right]), ("wrong", _wrong(its))):
            drawn = Random(_SEED).sample(chosen, min(EACH, len(chosen)))
            lines.append(f"## {backend}: {title}\n")
            lines += ["\n".join(_told(one)) + "\n" for one in drawn]
    path.write_text("\n".join(lines), "utf-8")


def _wrong(shown: Sequence[Shown]) -> list[Shown]:
    return [one for one in shown if not one.scored.is_right]


def _told(one: Shown) -> Iterator[str]:
    question, dossier = one.scored.question, one.scored.question.dossier
    trap = f", trap: {question.trap}" if question.trap else ""
    right = " or ".join(question.right) or NO_PATTERN
    yield f"### {question.run.removesuffix('.pt.trace.json.gz')} ({question.sort}{trap}): right is {right}\n"
    yield f"- told: {dossier.summary}"
    yield f"- choices: {', '.join(choice.slug for choice in dossier.choices)}"
    if one.diagnosis is None:
        yield "- no valid answer"
        return
    yield from _answer(one.diagnosis)


def _answer(found: Diagnosis) -> Iterator[str]:
    yield f"- answer: **{found.pattern}**, stage {found.stage.value}, fix {found.fix or 'none'}, {found.confidence}"
    yield f"- cause: {found.cause}"
    for claim in found.claims:
        yield f"- claim: {claim.text} [{', '.join(claim.evidence)}]"
    dropped = f"; {found.claims_dropped} claims dropped" if found.claims_dropped else ""
    yield f"- {found.verdict.value}, {found.answers} answers agree to {found.agreement:.2f}{dropped}"
