"""From a dossier to a checked diagnosis: ask a model several times, keep what it says the same of, check every word.

`ask` runs the model and is slow; `judge` makes of its answers what is shown. Only answers are worth keeping on disk:
judged again, they pass the same checks as if they had just been given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ..findings import Claim, Diagnosis, Fix, Stage
from .agreement import agree, most_common
from .answer import MOST_CLAIMS, Answer
from .backends.base import Backend, BackendError, Cancelled, Prompt, Watch
from .checks import check_cause, check_claims, meaning
from .dossier import NO_FIX, Dossier
from .known import Known
from .prompt import EDIT, write_prompt
from .schema import AnswerError, answer_schema, parse_answer

_MOST_TOKENS = 900
"""Of an answer without edit: its texts at their longest at a token a letter."""
_MOST_TOKENS_WITH_EDIT = 2400


class NoAnswer(BackendError):
    """Nothing that a model wrote could be read."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a proposed edit is not offered, in words."""

    why: str


CheckEdit = Callable[[str], Fix | Refusal]


@dataclass(frozen=True, slots=True)
class Options:
    """How often a model is asked, and for what."""

    samples: int = 3
    seconds: float = 30.0
    """No further sample is begun that would likely end after this. The first always is."""
    with_edit: bool = False
    """Let it rewrite the function: nothing for a small model."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a model answered."""

    answers: tuple[Answer, ...]
    """Those that could be read."""
    invalid: int
    """How many could not."""
    model: str
    seconds: float
    cut: tuple[str, ...]
    """What did not fit into the prompt."""


def diagnose(
    dossier: Dossier,
    backend: Backend,
    options: Options | None = None,
    check_edit: CheckEdit | None = None,
    watch: Watch | None = None,
) -> Diagnosis:
    """Ask and judge. Raises as `ask` does."""
    return judge(dossier, ask(dossier, backend, options or Options(), watch or Watch()), check_edit)


def ask(dossier: Dossier, backend: Backend, options: Options, watch: Watch) -> Asked:
    """Ask a model some times over the same evidence in different orders, greedily.

    Raises NoAnswer if none of its answers can be read, BackendError if it cannot be run at the first asking, Cancelled.
    """
    start = time.monotonic()
    schema = answer_schema(dossier, with_edit=options.with_edit)
    most_tokens = _MOST_TOKENS_WITH_EDIT if options.with_edit else _MOST_TOKENS
    answers: list[Answer] = []
    seen: set[Prompt] = set()
    cut: tuple[str, ...] = ()
    asked = tokens = 0
    why = ""
    for order in range(max(options.samples, 1)):
        if watch.is_cancelled():
            raise Cancelled
        elapsed = time.monotonic() - start
        if order and elapsed * (order + 1) / order > options.seconds:
            break
        written = write_prompt(dossier, backend.count_tokens, backend.prompt_budget, order)
        cut = cut or written.cut
        # Asked the very same again, a greedy model says the same: that would be no agreement.
        seed = order if written.prompt in seen else 0
        seen.add(written.prompt)
        try:
            completion = backend.complete(written.prompt, schema, most_tokens, seed, _counting_on(watch, tokens))
        except BackendError:
            if order == 0:
                raise
            break
        asked += 1
        tokens += completion.answer_tokens
        try:
            answers.append(parse_answer(completion.text, dossier))
        except AnswerError as error:
            why = str(error) if completion.is_whole else f"cut off after {completion.answer_tokens} tokens"
    if not answers:
        raise NoAnswer(f"{backend.name} gave no answer that can be used, asked {asked} times: {why}")
    return Asked(tuple(answers), asked - len(answers), backend.name, time.monotonic() - start, cut)


def judge(dossier: Dossier, asked: Asked, check_edit: CheckEdit | None = None) -> Diagnosis:
    """What of a model's answers is shown. `check_edit` tells whether an edit may be offered; without it none is."""
    known = Known(dossier)
    agreement = agree(asked.answers, len(asked.answers) + asked.invalid, dossier)
    first = agreement.answers[0]
    checked = [check_claims(answer.claims, known) for answer in agreement.answers]
    claims = _different(claim for one in checked for claim in one.claims)[:MOST_CLAIMS]
    causes = (check_cause(answer.cause, known) for answer in agreement.answers)
    edit, refused = _edit(agreement.answers, check_edit) if first.fix == EDIT else (None, "")
    own = {one.id for one in dossier.evidence}
    cited = dict.fromkeys(id for claim in claims for id in claim.evidence if id not in own)
    return Diagnosis(
        verdict=agreement.verdict,
        pattern=first.pattern,
        stage=Stage(most_common([answer.stage for answer in agreement.answers])),
        cause=next(filter(None, causes), meaning(first.pattern, dossier)),
        claims=claims,
        claims_dropped=sum(len(one.dropped) for one in checked),
        evidence=tuple(figure for id in cited for figure in known.figures[id]),
        fix=edit.id if edit is not None else "" if first.fix in (NO_FIX, EDIT) else first.fix,
        edit=edit,
        edit_refused=refused,
        confidence=agreement.confidence,
        agreement=agreement.share,
        answers=len(asked.answers) + asked.invalid,
        model=asked.model,
        seconds=asked.seconds,
        cut=asked.cut,
    )


def _edit(answers: Iterable[Answer], check_edit: CheckEdit | None) -> tuple[Fix | None, str]:
    """The first of the edits that passes, or why the last one does not."""
    if check_edit is None:
        return None, "edits of this source cannot be checked here"
    why = ""
    for answer in answers:
        result = check_edit(answer.edit)
        if isinstance(result, Fix):
            return result, ""
        why = result.why
    return None, why


def _different(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """Claims without those that say the same in the same words."""
    by_words = {claim.text.casefold().rstrip(".!"): claim for claim in reversed(list(claims))}
    return tuple(reversed(by_words.values()))


def _counting_on(watch: Watch, tokens: int) -> Watch:
    """Told of an answer's tokens, it tells of those of the answers before too."""
    return replace(watch, on_token=lambda count: watch.on_token(tokens + count))
