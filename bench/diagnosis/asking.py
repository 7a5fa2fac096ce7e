"""Asks one question, as the product does, and notes what that took."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchtraceap.analyzer.diagnosis.backends.base import (
    Backend,
    BackendError,
    Completion,
    JsonSchema,
    Prompt,
    Watch,
)
from torchtraceap.analyzer.diagnosis.diagnose import Options, diagnose
from torchtraceap.analyzer.diagnosis.dossier import NO_FIX, Dossier
from torchtraceap.analyzer.diagnosis.schema import AnswerError, parse_answer
from torchtraceap.analyzer.findings import Diagnosis

from .questions import Question
from .recheck import false_figures
from .score import Given
from .stage_one import fix_of, likeliest


@dataclass(slots=True)
class Noting:
    """A backend that keeps what it said."""

    inner: Backend
    said: list[Completion] = field(default_factory=list)

    @property
    def name(self) -> str:
        """As the backend's."""
        return self.inner.name

    @property
    def prompt_budget(self) -> int:
        """As the backend's."""
        return self.inner.prompt_budget

    def count_tokens(self, text: str) -> int:
        """As the backend does."""
        return self.inner.count_tokens(text)

    def complete(self, prompt: Prompt, schema: JsonSchema, most_tokens: int, seed: int, watch: Watch) -> Completion:
        """As the backend does."""
        done = self.inner.complete(prompt, schema, most_tokens, seed, watch)
        self.said.append(done)
        return done

    def close(self) -> None:
        """As the backend does."""
        self.inner.close()


def by_stage_one(question: Question, threshold: float) -> Given:
    """What the first stage alone answers."""
    pattern = likeliest(question.dossier, threshold)
    return Given(pattern, fix_of(question.dossier, pattern))


def by_model(question: Question, backend: Backend, samples: int) -> tuple[Given, Diagnosis | None]:
    """What a model answers, and how; no diagnosis where it gave no valid answer."""
    noting = Noting(backend)
    try:
        found = diagnose(question.dossier, noting, Options(samples=samples))
    except BackendError:
        return _given(question, noting.said, None), None
    return _given(question, noting.said, found), found


def _given(question: Question, said: list[Completion], found: Diagnosis | None) -> Given:
    return Given(
        pattern=found.pattern if found else "",
        fix=(found.fix or NO_FIX) if found else "",
        seconds=sum(one.seconds for one in said),
        asked=len(said),
        valid=sum(_is_valid(one.text, question.dossier) for one in said),
        claims=len(found.claims) if found else 0,
        dropped=found.claims_dropped if found else 0,
        false_figures=len(false_figures(found.claims, question.dossier)) if found else 0,
        agreement=found.agreement if found else 0.0,
        prompt_tokens=sum(one.prompt_tokens for one in said),
        answer_tokens=sum(one.answer_tokens for one in said),
        verdict=found.verdict.value if found else "",
    )


def _is_valid(text: str, dossier: Dossier) -> bool:
    try:
        parse_answer(text, dossier)
    except AnswerError:
        return False
    return True
