"""What several answers to one dossier come to, each given over the same evidence in another order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar, get_args

from ..findings import Verdict
from .answer import Answer, Confidence
from .dossier import NO_PATTERN, Dossier

_LIKELY = 0.5
"""From here on the detector calls a window bad that no rule speaks of."""
_LEAST_VOTES = 2

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Agreement:
    """The answers that name the pattern and fix that most of them name, and what that is worth."""

    answers: tuple[Answer, ...]
    """In the order asked; at least one."""
    share: float
    """Of all that were asked for, those that could not be read included."""
    verdict: Verdict

    @property
    def confidence(self) -> Confidence:
        """The word that most of them use, of equally many the least sure."""
        words = get_args(Confidence)
        counts = Counter(answer.confidence for answer in self.answers)
        return max(words, key=lambda word: (counts[word], -words.index(word)))


def agree(answers: Sequence[Answer], asked: int, dossier: Dossier) -> Agreement:
    """What most of `answers` say, of `asked`; of equally many, what was said first. There is at least one answer."""
    pattern, fix = most_common([(answer.pattern, answer.fix) for answer in answers])
    alike = tuple(answer for answer in answers if (answer.pattern, answer.fix) == (pattern, fix))
    share = len(alike) / asked
    if len(alike) < _LEAST_VOTES or share <= 0.5:
        verdict = Verdict.UNCONFIRMED
    else:
        verdict = Verdict.CONFIRMED if pattern == first_thought(dossier) else Verdict.DISAGREES
    return Agreement(alike, share, verdict)


def first_thought(dossier: Dossier) -> str:
    """The pattern that the first stage names: the finding's; of a window without one, the likeliest if the detector
    calls the window bad."""
    if dossier.slug or dossier.bad is None or dossier.bad < _LIKELY or not dossier.choices:
        return dossier.slug or NO_PATTERN
    return dossier.choices[0].slug


def most_common(items: Sequence[T]) -> T:
    """What is there most often; of equally many, the first."""
    counts = Counter(items)
    return max(counts, key=lambda item: counts[item])
