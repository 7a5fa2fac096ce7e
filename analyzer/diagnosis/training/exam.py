"""What a model with its adapter makes of pairs that it never learned from: asked once each, as the product asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..answer import Answer
from ..backends.base import Backend, Watch
from ..dossier import NO_PATTERN
from ..prompt import write_prompt
from ..schema import AnswerError, answer_schema, parse_answer
from .pairs import Pair

MOST_TOKENS = 400


@dataclass(frozen=True, slots=True)
class Figures:
    """Shares are 0 to 1; None where there was nothing to take a share of."""

    pairs: int
    json_valid: float
    pattern_acc: float | None
    """Of the pairs with a fault, those of which it names the right one."""
    none_acc: float | None
    """Of those without, the ones that it says so of."""
    fix_acc: float | None
    """Of the pairs with a fault."""
    tokens_per_answer: float
    seconds_per_answer: float


def hold_exam(backend: Backend, pairs: Sequence[Pair], tell: Callable[[str], None]) -> Figures:
    """Ask every pair's question once, greedily. Raises BackendError, ValueError without pairs."""
    if not pairs:
        raise ValueError("no pair is of the split 'exam'")
    asked = []
    for number, pair in enumerate(pairs, 1):
        asked.append(_ask(backend, pair))
        if number % 10 == 0 or number == len(pairs):
            tell(f"exam: {number} of {len(pairs)} pairs, {_share([one.is_right for one in asked]):.2f} right")
    faults = [one for one in asked if one.pair.answer.pattern != NO_PATTERN]
    healthy = [one for one in asked if one.pair.answer.pattern == NO_PATTERN]
    return Figures(
        pairs=len(asked),
        json_valid=_share([one.answer is not None for one in asked]),
        pattern_acc=_share([one.is_right for one in faults]) if faults else None,
        none_acc=_share([one.is_right for one in healthy]) if healthy else None,
        fix_acc=_share([one.has_right_fix for one in faults]) if faults else None,
        tokens_per_answer=sum(one.tokens for one in asked) / len(asked),
        seconds_per_answer=sum(one.seconds for one in asked) / len(asked),
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    pair: Pair
    answer: Answer | None
    tokens: int
    seconds: float

    @property
    def is_right(self) -> bool:
        return self.answer is not None and self.answer.pattern == self.pair.answer.pattern

    @property
    def has_right_fix(self) -> bool:
        return self.answer is not None and self.answer.fix == self.pair.answer.fix


def _ask(backend: Backend, pair: Pair) -> _Asked:
    written = write_prompt(pair.dossier, backend.count_tokens, backend.prompt_budget)
    said = backend.complete(written.prompt, answer_schema(pair.dossier), MOST_TOKENS, 0, Watch())
    try:
        answer = parse_answer(said.text, pair.dossier)
    except AnswerError:
        answer = None
    return _Asked(pair, answer, said.answer_tokens, said.seconds)


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags)
