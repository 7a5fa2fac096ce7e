"""The interface of what runs a language model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

JsonSchema = Mapping[str, Any]


class BackendError(Exception):
    """The model cannot be run, or gave up. The text says why and what to do about it."""


class Cancelled(Exception):
    """The caller asked to stop."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is asked."""

    system: str
    user: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What it said."""

    text: str
    prompt_tokens: int
    answer_tokens: int
    seconds: float
    is_whole: bool
    """False if it was cut off at the most tokens allowed."""


@dataclass(frozen=True, slots=True)
class Watch:
    """How a caller looks on and stops."""

    on_token: Callable[[int], None] = lambda count: None
    """Told how many tokens there are so far."""
    is_cancelled: Callable[[], bool] = lambda: False
    """Asked at every token; then `Cancelled` is raised."""


class Backend(Protocol):
    """Runs one language model. Loaded when made; `close` gives its memory back."""

    @property
    def name(self) -> str:
        """As people call it, with what it runs as: "CodeLlama-7b-Instruct-hf, NF4"."""
        ...

    @property
    def prompt_budget(self) -> int:
        """Tokens that a prompt may have, so that the answer fits the context and comes in reasonable time."""
        ...

    def count_tokens(self, text: str) -> int:
        """How many tokens a text has for this model (a close guess from above, where it cannot be known)."""
        ...

    def complete(self, prompt: Prompt, schema: JsonSchema, most_tokens: int, seed: int, watch: Watch) -> Completion:
        """Answer with JSON of the schema; greedily for seed 0. Raises BackendError or Cancelled."""
        ...

    def close(self) -> None:
        """Give the memory back."""
        ...
