"""How good answers are, with 95 % intervals over runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from torchtraceap.analyzer.trace.model import FloatArray

from .questions import Question

DRAWS = 1000
_SEED = 0


@dataclass(frozen=True, slots=True)
class Given:
    """What came of one question."""

    pattern: str
    """"" where there was no valid answer."""
    fix: str
    """An id, or "none"."""
    seconds: float = 0.0
    """Of all samples together."""
    asked: int = 0
    """Times that the model was asked; 0 for what is no model."""
    valid: int = 0
    """Times that it wrote a valid answer."""
    claims: int = 0
    """That are shown."""
    dropped: int = 0
    false_figures: int = 0
    """In claims that are shown."""
    agreement: float = 1.0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Scored:
    """A question with what came of it."""

    question: Question
    given: Given

    @property
    def is_right(self) -> bool:
        """Whether the pattern is."""
        return self.question.is_right(self.given.pattern)


@dataclass(frozen=True, slots=True)
class _Measure:
    """A figure that is a ratio of two sums over questions."""

    of: Callable[[Scored], float]
    per: Callable[[Scored], float]


MEASURES: Mapping[str, _Measure] = {
    "pattern_acc": _Measure(lambda one: one.is_right, lambda one: 1),
    "none_acc": _Measure(
        lambda one: one.question.is_healthy and one.is_right,
        lambda one: one.question.is_healthy,
    ),
    "fault_acc": _Measure(
        lambda one: not one.question.is_healthy and one.is_right,
        lambda one: not one.question.is_healthy,
    ),
    "fix_acc": _Measure(
        lambda one: bool(one.question.dossier.fixes) and one.given.fix in one.question.right_fixes,
        lambda one: bool(one.question.dossier.fixes),
    ),
    "json_valid": _Measure(lambda one: 100 * one.given.valid, lambda one: one.given.asked),
    "claims_per_answer": _Measure(lambda one: one.given.claims, lambda one: one.given.asked > 0),
    "claims_kept_pct": _Measure(lambda one: 100 * one.given.claims, lambda one: one.given.claims + one.given.dropped),
    "agreement": _Measure(lambda one: one.given.agreement * (one.given.asked > 0), lambda one: one.given.asked > 0),
    "seconds_per_answer": _Measure(lambda one: one.given.seconds, lambda one: one.given.asked > 0),
    "prompt_tokens": _Measure(lambda one: one.given.prompt_tokens, lambda one: one.given.asked),
    "answer_tokens": _Measure(lambda one: one.given.answer_tokens, lambda one: one.given.asked),
}
"""`json_valid` and `claims_kept_pct` in per cent, the accuracies and the agreement from 0 to 1; tokens are those of one
sample, seconds those of all samples of an answer. `fix_acc` is of the questions to which a fix is offered."""
FALSE_FIGURES = "false_numbers_shown"


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure with the ends of its interval."""

    value: float
    low: float
    high: float


def measure(scored: Sequence[Scored]) -> dict[str, Measured]:
    """All figures that there is something to measure of, by name. Intervals are of draws of whole runs."""
    weights = _draws(scored)
    found: dict[str, Measured] = {}
    for name, one in MEASURES.items():
        above = np.array([float(one.of(each)) for each in scored])
        below = np.array([float(one.per(each)) for each in scored])
        if below.sum() > 0:
            drawn = (weights @ above) / np.maximum(weights @ below, 1e-9)
            low, high = np.percentile(drawn[weights @ below > 0], (2.5, 97.5))
            found[name] = Measured(float(above.sum() / below.sum()), float(low), float(high))
    if "json_valid" in found:
        count = float(sum(each.given.false_figures for each in scored))
        found[FALSE_FIGURES] = Measured(count, count, count)
    return found


def _draws(scored: Sequence[Scored]) -> FloatArray:
    """Shape (draws, questions): how often each question is in a draw of as many runs as there are."""
    runs, run = np.unique([run_of(each.question) for each in scored], return_inverse=True)
    drawn = np.random.default_rng(_SEED).multinomial(len(runs), np.full(len(runs), 1 / len(runs)), DRAWS)
    return drawn[:, run].astype(np.float64)


def run_of(question: Question) -> str:
    """The program that was run: a recording and what was simulated from it are one."""
    return question.run.partition("_")[0]
